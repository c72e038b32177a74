#include "syscalls/handlers/handlers.h"

#include "arch/call.h"

/*
 * The engine may hold a task on its own CPU. The kernel runs the call; it only has to find what the guest chose itself.
 * pid_t is 32 bits to the kernel, whatever is in the upper half of the register.
 */
static struct verdict affinity_forward(struct call *call)
{
	guest_affinity_settle(call, (pid_t)(uint32_t)call->args[0]);
	return verdict_forward();
}

struct verdict sys_sched_setaffinity(void *context, struct call *call)
{
	(void)context;
	return affinity_forward(call);
}

struct verdict sys_sched_getaffinity(void *context, struct call *call)
{
	(void)context;
	return affinity_forward(call);
}
