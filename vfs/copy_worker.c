/* copy_worker.c - the thread that copies large files */
#include "vfs/copy.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;	/* there is a job */
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;	/* a job has ended */
static struct copy_job *first, **last = &first;
static bool running;

enum { STACK = 256 << 10 };

static struct copy_job *take(void)
{
	struct copy_job *job;

	pthread_mutex_lock(&lock);
	while (!first)
		pthread_cond_wait(&wake, &lock);
	job = first;
	first = job->next;
	if (!first)
		last = &first;
	pthread_mutex_unlock(&lock);
	return job;
}

/* The job may be gone as soon as `done` is seen. */
static void finish(struct copy_job *job, int result)
{
	void (*notify)(void *) = job->notify;
	void *arg = job->arg;

	pthread_mutex_lock(&lock);
	job->result = result;
	__atomic_store_n(&job->done, true, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&ended);
	pthread_mutex_unlock(&lock);
	if (notify)
		notify(arg);
}

static void *work(void *unused)
{
	(void)unused;
	for (;;) {
		struct copy_job *job = take();

		finish(job, job->cancel ? -ECANCELED : copy_data(job->from, job->to, job->size, &job->cancel));
	}
	return NULL;
}

static int thread_make(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int error;

	if (pthread_attr_init(&attr))
		return -EAGAIN;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	/* The thread is born with the mask of its maker. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, &attr, work, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return error ? -EAGAIN : 0;
}

int copy_start(struct copy_job *job)
{
	int error = 0;

	job->next = NULL;
	job->cancel = job->done = false;
	job->result = 0;
	pthread_mutex_lock(&lock);
	if (!running)
		error = thread_make();
	if (!error) {
		running = true;
		*last = job;
		last = &job->next;
		pthread_cond_signal(&wake);
	}
	pthread_mutex_unlock(&lock);
	return error;
}

bool copy_done(const struct copy_job *job)
{
	return __atomic_load_n(&job->done, __ATOMIC_ACQUIRE);
}

void copy_cancel(struct copy_job *job)
{
	__atomic_store_n(&job->cancel, true, __ATOMIC_RELAXED);
}

int copy_wait(struct copy_job *job)
{
	pthread_mutex_lock(&lock);
	while (!job->done)
		pthread_cond_wait(&ended, &lock);
	pthread_mutex_unlock(&lock);
	return job->result;
}
