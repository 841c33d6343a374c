package store

import "strings"

// Routed is what a scheduler says of how it has routed a run, in the first lines of its
// TriggerMsg. A store may keep less of it than the text, where the rest stands elsewhere in
// the run.
type Routed struct {
	Type         string // the run's
	Node         string // which has routed it
	Route, Block string // the job's
	Addresses    string // which there were to choose from, with commas between them
}

// What stands between the fields.
const (
	typePart    = "type: "
	nodePart    = "\nnode: "
	routePart   = "\nroute: "
	blockPart   = ", block: "
	addressPart = "\naddresses: "
)

// String returns the lines.
func (r Routed) String() string {
	return typePart + r.Type + nodePart + r.Node + routePart + r.Route + blockPart + r.Block + addressPart + r.Addresses
}

// Read sets Route and Addresses as a message has them. It reports whether String is the message
// then, as far as the other fields are concerned too, with no line behind the addresses.
func (r *Routed) Read(msg string) bool {
	rest, is := strings.CutPrefix(msg, typePart+r.Type+nodePart+r.Node+routePart)
	if !is {
		return false
	}
	r.Route, r.Addresses, is = strings.Cut(rest, blockPart+r.Block+addressPart)
	return is && !strings.Contains(r.Addresses, "\n")
}
