package cron

// Policy says what becomes of wall clock readings that a change of a zone's
// offset skips or repeats.
type Policy uint8

const (
	// Civil serves what people mean. A schedule with fixed hours fires once in
	// any case: at the first instant after the gap that swallowed it, or in the
	// first pass through a repeated stretch. A schedule with a wildcard, a range
	// or a step in its hours follows the wall clock: skipped readings are
	// skipped, repeated ones fire in both passes.
	Civil Policy = iota

	// Quartz does what the Quartz scheduler does. Skipped readings are skipped
	// for every schedule. In a repeated stretch only the second pass fires;
	// asked from within the first pass, the search goes on from the same reading
	// of the second, so what that pass holds before it is lost.
	Quartz
)

// String returns the name of the policy.
func (p Policy) String() string {
	if p == Quartz {
		return "quartz"
	}
	return "civil"
}
