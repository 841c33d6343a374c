package pgtest

// What the tests of this package look at.
func PostgresPlaces() []string { return postgresPlaces() }
func BouncerPlaces() []string  { return bouncerPlaces() }

var (
	FindIn = find
	GiveUp = giveUp

	FindBouncerIn = findBouncer
	NoBouncer     = noBouncer

	MemoryRoot = memoryRoot
)
