package store

// Progress is how far a run is, as its handler has said. It takes effect while the run is
// started or dispatched and has Token: it is about that start, and a later one is none of its
// business. With an Incarnation it comes from an attached executor: the run must be started
// then, and be addressed to that incarnation.
type Progress struct {
	RunID       int64
	Incarnation string
	Token       int64
	// Percent is from 0 to 100. Text is UTF-8 without NUL, and may be empty.
	Percent int
	Text    string
}
