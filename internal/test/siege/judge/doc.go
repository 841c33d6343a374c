// Package judge measures what an honest app saw during a siege and decides whether it
// was served as promised.
//
// Comes in: a sample for each request, and the live heap and goroutines of the scheduler,
// each with its moment. Goes out: percentiles and counts, and the faults as sentences.
//
// It knows nothing of the scheduler, does no I/O and reads no clock. All moments are
// durations since the beginning of the run.
package judge
