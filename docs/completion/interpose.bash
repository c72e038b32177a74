# bash completion for interpose(1)

# _interpose_command FIRST: completes the command that begins at word FIRST, as if interpose were not there.
_interpose_command() {
	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif ((COMP_CWORD == $1)); then
		mapfile -t COMPREPLY < <(compgen -A command -- "${COMP_WORDS[COMP_CWORD]}")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
	fi
}

_interpose() {
	local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} i
	local engines='auto trace ptrace'
	local sets='all none %file %desc %network %process %signal %ipc %memory %creds %stat %clock %pure'
	COMPREPLY=()

	# bash splits words at "=": --engine=trace is three of them.
	if [[ $word == = ]]; then
		word=
	elif [[ $previous == = ]] && ((COMP_CWORD >= 2)); then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	fi

	# The command begins at the first word that is neither an option nor an option's value.
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--)
			_interpose_command $((i + 1))
			return
			;;
		--engine | --env | --cwd | --cow | --rw | --ro | --hide | --tmp | --bind | --file | --upper | --name | -n | -o)
			[[ ${COMP_WORDS[i + 1]-} == = ]] && ((i++))
			((i++))
			# The value of --env has a "=" of its own.
			[[ ${COMP_WORDS[i + 1]-} == = ]] && ((i += 2))
			;;
		--trace) [[ ${COMP_WORDS[i + 1]-} == = ]] && ((i += 2)) ;;
		-*) ;;
		*)
			_interpose_command "$i"
			return
			;;
		esac
	done

	case $previous in
	--engine)
		mapfile -t COMPREPLY < <(compgen -W "$engines" -- "$word")
		return
		;;
	--trace)
		if [[ ${COMP_WORDS[COMP_CWORD - 1]} == = || ${COMP_WORDS[COMP_CWORD]} == = ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$sets" -- "$word")
			return
		fi
		;;
	--cwd | --tmp | --upper)
		mapfile -t COMPREPLY < <(compgen -d -- "$word")
		return
		;;
	-o | --cow | --rw | --ro | --hide | --bind | --file)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
		;;
	-n | --name)
		mapfile -t COMPREPLY < <(compgen -W "$(ls "${XDG_STATE_HOME:-$HOME/.local/state}/interpose" 2>/dev/null)" -- "$word")
		return
		;;
	--env)
		mapfile -t COMPREPLY < <(compgen -e -- "$word")
		return
		;;
	esac

	if [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W '--engine --trace --count --explain --env --clear-env --cwd --version --help
			--cow --rw --ro --hide --tmp --bind --file --upper --name --diff -n -o -c -q -v' -- "$word")
		return
	fi
	_interpose_command "$COMP_CWORD"
	if ((COMP_CWORD == 1)); then
		mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W 'diff commit discard list' -- "$word")
	fi
}

complete -F _interpose interpose
