package xxljob

// startLog is what the book has of a start of a run, from before its handler is called: no log,
// until that logs something, so that handlers which do not cost nothing. Its fields are guarded
// by the book's mu.
type startLog struct {
	log      any  // of the book of lines: nil until the run logs something
	returned bool // the handler has
}
