// A clock that is ahead of the machine's by as many seconds as a file says, for a server whose
// loader is told to load this first.
#define _GNU_SOURCE
#include <sys/time.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static volatile long *step;
static long zero;

static long ahead(void) {
	if (!step) {
		const char *name = getenv("CLOCKSTEP_FILE");
		int fd = name ? open(name, O_RDONLY) : -1;
		void *p = fd < 0 ? MAP_FAILED : mmap(0, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
		if (fd >= 0)
			close(fd);
		step = p == MAP_FAILED ? &zero : (volatile long *)p;
	}
	return *step;
}

int clock_gettime(clockid_t clock, struct timespec *ts) {
	int r = syscall(SYS_clock_gettime, clock, ts);
	if (r == 0 && clock == CLOCK_REALTIME)
		ts->tv_sec += ahead();
	return r;
}

int gettimeofday(struct timeval *tv, void *zone) {
	struct timespec ts;
	if (syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts))
		return -1;
	tv->tv_sec = ts.tv_sec + ahead();
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *t) {
	struct timespec ts;
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts);
	ts.tv_sec += ahead();
	if (t)
		*t = ts.tv_sec;
	return ts.tv_sec;
}
