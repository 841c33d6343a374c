// A library to be preloaded into a server of Postgres: its clock is ahead of the machine's by the
// seconds in the file that CLOCKSTEP_FILE names, 8 bytes, which may change at any time.
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
static long off(void) {
	if (!step) {
		const char *f = getenv("CLOCKSTEP_FILE");
		int fd = f ? open(f, O_RDONLY) : -1;
		void *p = fd < 0 ? MAP_FAILED : mmap(0, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
		if (fd >= 0) close(fd);
		step = p == MAP_FAILED ? &zero : (volatile long *)p;
	}
	return *step;
}
int clock_gettime(clockid_t c, struct timespec *ts) {
	int r = syscall(SYS_clock_gettime, c, ts);
	if (r == 0 && c == CLOCK_REALTIME) ts->tv_sec += off();
	return r;
}
int gettimeofday(struct timeval *tv, void *tz) {
	struct timespec ts;
	if (syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts)) return -1;
	tv->tv_sec = ts.tv_sec + off();
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}
time_t time(time_t *t) {
	struct timespec ts;
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts);
	ts.tv_sec += off();
	if (t) *t = ts.tv_sec;
	return ts.tv_sec;
}
