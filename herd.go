package xxljob

// herd is how many of those that wait go together. It begins with one when nobody waits any
// more. It belongs to the start loop.
type herd struct{ most int }
