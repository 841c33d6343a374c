//go:build !race

package xxljob_test

// detector says whether the tests run under the race detector.
const detector = false
