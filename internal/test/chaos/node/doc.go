// Command node is one process of a chaos test: a real scheduler over a real store,
// with two attached executors whose handlers write down every start and end that
// they see. What it is to do comes over a socket (package control).
//
// With the build tag failpoint the store's failpoints can be armed from outside;
// with the tag clockstep, and package time overlaid by the supervisor, so can
// steps of the process's wall clock.
package main
