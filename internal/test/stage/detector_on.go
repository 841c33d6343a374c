//go:build race

package stage

// Detector says that the tests run under the race detector, which makes them ten times as
// slow: the largest of them, whose size is for other faults than races, are smaller then.
const Detector = true
