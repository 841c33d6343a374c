package store

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Group is an executor app and the addresses that serve it: one row of
// XXL-JOB's xxl_job_group.
type Group struct {
	// App is the app's name, unique. Required, at most 64 bytes.
	App string
	// Title is what people read. At most 64 bytes; empty means App.
	Title string
	// Manual is true when Addresses holds the app's addresses (XXL-JOB:
	// address_type 1), false when they come from the Registry.
	Manual bool
	// Addresses are base URLs, http or https, for a manual group only.
	Addresses []string
	// Updated is set by the store.
	Updated time.Time
}

// Validate reports every fault of the group at once, or nil.
func (g Group) Validate() error {
	f := Faults{Of: "group"}
	f.Key("App", g.App, 1, 64)
	f.Text("Title", g.Title, 0, 64)
	if g.Manual && len(g.Addresses) == 0 {
		f.Add("Addresses", g.Addresses, errors.New("a manual group needs at least one"))
	}
	if !g.Manual && len(g.Addresses) > 0 {
		f.Add("Addresses", g.Addresses, errors.New("only a manual group has its own"))
	}
	for i, a := range g.Addresses {
		f.Add("Addresses", a, checkAddress(a))
		if slices.Contains(g.Addresses[:i], a) {
			f.Add("Addresses", a, errors.New("listed twice"))
		}
	}
	return f.Err()
}

// checkAddress accepts the base URL of a remote executor.
func checkAddress(addr string) error {
	if strings.ContainsAny(addr, ", \t\r\n") {
		return errors.New("has a comma or a blank: want one address, and of a list one by one")
	}
	u, err := url.Parse(addr)
	switch {
	case err != nil && !strings.Contains(addr, "://"): // "10.0.0.1:9999", which is taken for a path with a colon
		return errors.New("want http:// or https://")
	case err != nil:
		return err
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("want http:// or https://")
	case u.Port() != "" && !isPort(u.Port()):
		return errors.New("want a port from 1 to 65535")
	case u.Host == "" || u.User != nil || u.Fragment != "" || u.RawQuery != "":
		return errors.New("want scheme, host and path only")
	}
	return nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

func (g Group) clone() Group {
	g.Addresses = slices.Clone(g.Addresses)
	return g
}

// Node is one started Scheduler among those that share a store.
type Node struct {
	// ID is Config.Node.
	ID string
	// Incarnation is new with each New, and so with each Start: the ID, a dash and
	// a random suffix. It is the node's address, in the form local://incarnation.
	Incarnation string
	// Beats counts the node's beats. Other nodes watch it change on their own
	// monotonic clocks; no wall clock takes part.
	Beats int64
	// Left is true after a clean Stop, and after another node buried this one.
	Left bool
	// Joined is the store's time of the first beat. Of two incarnations of one
	// ID the later one supersedes the other.
	Joined time.Time
	// Resting is set from the beat on that says that the node takes no more part: it
	// stops, and waits for its handlers. It has no use for shards. One that rests because
	// it is Failing is not meant.
	Resting bool
	// Failing is set while the node says that its claims or starts have failed for a
	// LeaseTTL (SetFailing): it rests, and has no use for shards, as long as a live node
	// is there that neither fails nor stops.
	Failing bool
	// Away reports that the node's connection to the store has ended, with its
	// process perhaps, and that it has not come back: it has no use for shards. A
	// store that cannot tell leaves it false. It is an answer of the store only.
	Away bool
	// Zones is true where the node has data of time zones, and Knows counts what its release knows
	// of schedules, as Join was told; false and 0 of a node that has not said so.
	Zones bool
	Knows int
	// UnknownZones are zones that the node has met in jobs and has no data of, whether it has data of
	// others or not (ZoneNoter). Join says none.
	UnknownZones []string
	// Routers are the names of the node's own routing strategies (Config.Routers), in order, but for
	// those of XXL-JOB, which each node has. Join was told them; a node that has not said so has none.
	Routers []string
	// Version is the release of the node's program, and ClockOffset how far the store's clock is ahead
	// of its own, at least and to the millisecond, as it has seen and said last (ProcessNoter); empty and
	// zero of a node that has said neither. Join says none.
	Version     string
	ClockOffset time.Duration
	// Attached are the executors that run inside the node's process.
	Attached []Attachment
}

// CanMore reports whether a node can work out what another one cannot for a cause: a job in a zone
// that the other has met, or with a schedule of a newer release.
func (n *Node) CanMore(than *Node, cause TroubleCause) bool {
	switch cause {
	case TroubleUnknownZone:
		return n.Zones && (!than.Zones || slices.ContainsFunc(than.UnknownZones, func(zone string) bool { return !slices.Contains(n.UnknownZones, zone) }))
	case TroubleUnknownSchedule:
		return n.Knows > than.Knows
	}
	return false
}

// IsRemote reports whether addr is the address of a remote executor.
func IsRemote(addr string) bool {
	_, local := LocalIncarnation(addr)
	return !local && addr != ""
}
