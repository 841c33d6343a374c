//go:build !race

package stage

// Detector says whether the tests run under the race detector.
const Detector = false
