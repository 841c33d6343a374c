// Package loop runs what a started scheduler does again and again: goroutines that end
// together, how they are woken, how they wait after errors, and what they gather for one call.
//
// # Loops that end together
//
// A Group is goroutines with one context. Run starts one, End cancels all of
// them and waits until they have returned. Try is for callers who come at any time: it reports
// false once they are to end. Every goroutine of the scheduler that calls the store
// belongs to such a group, so it has an owner, one place that starts it, and somebody who waits
// for it.
//
// The context of the loops is marked as urgent (internal/urgent): without what they ask of the
// store no run goes on, so a store may give them the connection that it keeps in reserve. What
// no run waits for is started with Aside, which takes the mark away.
//
// A Duty is the usual shape of a loop: Once does the work and says how long to wait, for the first
// time After does, Wakes end that wait sooner, and an error is logged once for a streak and tried again soon. Loop takes
// the place of Once where the work has another shape. Room node has the table of all duties.
//
// A Pool keeps up to poolIdle goroutines that have finished a piece of work, for the next one:
// a call over HTTP needs several times the stack that a goroutine begins with, and growing it
// costs a good part of what the call does.
//
// # Waiting
//
// Nothing ticks. A loop sleeps until the next instant that it knows or until a Wake is poked;
// many pokes before it looks are one. That is why there is no poll where the store signals
// everything itself: an idle scheduler in memory has timers for housekeeping alone.
//
// There is no clock interface. Pure code takes the time as an argument, a loop reads the clock
// once a pass, and tests run in bubbles of testing/synctest; an interface would be in every
// constructor, and the test that forgets it would not be noticed.
//
// After errors a Backoff waits from BackoffFirst to backoffMost, half of it at random, so that
// nodes do not come back in step. It logs a streak of errors when it begins and when it is
// over.
//
// # Calls of the store
//
// Call and Do give a call a deadline. Detached does so too, and sees the call through if its context
// ends meanwhile: otherwise what it writes would be there or not, and nobody would find out.
// CallUntil repeats a call until the store has answered, because an error of a store means that
// the outcome is unknown. It returns ErrLocked beside what was stored: rows that others
// have locked are an answer, so that they hold up nothing else.
//
// A Batch collects what many callers bring and has its loop store up to StoreBatch of it in one
// call. What comes back as locked is tried again after a pause, with what has come meanwhile.
//
// # Bounds and memory
//
// A LogLimiter lets the log say one thing once a minute. A RateLimit counts the calls by which a caller
// manages jobs, for each token. Both know a bounded number of keys, and what is beyond that
// counts together, because callers may name apps without end.
//
// A Scratch lends memory to one call at a time. Where a call has failed and may still be under
// way, Drop leaves the memory to it.
//
// The locks here (those of Batch, Group, LogLimiter and RateLimit) are leaves: nothing of ours is
// locked under them.
package loop
