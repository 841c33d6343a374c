package store

// What a store keeps of nodes, shards and executors elsewhere, and the signals that it
// gives.

import (
	"context"
	"time"
)

// NodeStore is the part of a Store that keeps nodes and the leases of shards, and what nodes
// tell each other. It is for authors of stores.
type NodeStore interface {
	// Now returns the store's clock, as View.Now does, for those who have not
	// joined.
	Now(ctx context.Context) (time.Time, error)
	// Join adds a node under a new incarnation, with Beats 1. Zones, Knows and Routers are stored with
	// it; a Beat leaves them as they are, and gives them back where it adds the node again.
	Join(ctx context.Context, n Node) (View, error)
	// Beat raises the node's counter, stores its attached executors, where nil says
	// that the node is Resting and an empty list that it has none, clears Left,
	// and returns the cluster as the node should see it. A node that is not there
	// any more is added again, but supersedes nobody by that: its Joined is the
	// former one, or zero.
	Beat(ctx context.Context, incarnation string, attached []Attachment) (View, error)
	// SetFailing stores with the node whether it is Failing. A Beat leaves that as it is;
	// a node that joins, or is added again by a Beat, is not. A node that is not there is
	// no error.
	SetFailing(ctx context.Context, incarnation string, failing bool) error
	// Leave marks the node as left and releases its shards. A node that is not
	// there is no error.
	Leave(ctx context.Context, incarnation string) error
	// Bury marks the node as left, if its counter is still beats, and deletes it
	// if in addition no unended run has it as owner or addressee. A node that is
	// not there is no error.
	Bury(ctx context.Context, incarnation string, beats int64) error
	// TakeShards makes the incarnation the owner of those of the shards whose
	// Owner and Epoch are as given, raises their epochs, and returns them as they
	// then are. A statement of the former owner under the old epoch either
	// committed before, and is seen by the new owner, or changes nothing.
	TakeShards(ctx context.Context, incarnation string, shards []Shard) ([]Shard, error)
	// ReleaseShards gives up those of the shards that the incarnation owns under
	// the given epoch.
	ReleaseShards(ctx context.Context, incarnation string, shards []Shard) error

	// A question for lines of a run's log, or for where a run is to go, is put to another node by
	// the store, and the answer comes back. It is dropped a minute after it was asked, answered or not: it is in
	// no Inbox from then on, and unknown to the methods here.

	// AskLog puts a question to an incarnation, which finds it in its Inbox, and
	// returns it with a new ID. Whether the incarnation is there is not looked at.
	// ErrNotFound when there is no such run.
	AskLog(ctx context.Context, ask Ask) (Ask, error)
	// AnswerLog answers a question, by a compare-and-set: of several answers the
	// first stays. A question that is not there is no error.
	AnswerLog(ctx context.Context, id int64, answer Answer) error
	// LogAnswer returns the answer to a question; answered is false while there is
	// none. ErrNotFound when there is no such question.
	LogAnswer(ctx context.Context, id int64) (answer Answer, answered bool, err error)

	// Watch returns signals for the incarnation until ctx ends. A signal is a
	// hint: it may come late, for nothing, or stand for many events; a store that
	// cannot hint returns nil channels.
	Watch(ctx context.Context, incarnation string) Signals
	// Poll is how often a scheduler looks by itself, because signals may be lost:
	// for what is due and for runs that ended, and into its inbox. Both are zero
	// when signals never are lost.
	Poll() (scan, inbox time.Duration)
}

// View, for authors of stores, is the cluster at one moment.
type View struct {
	// Now is the store's clock when the call was answered; zero when the store
	// goes by the clock of this process.
	Now time.Time
	// Server identifies the server process that answered, in a form of the store's own;
	// empty if the store is in this process. If it changes, the new server may have
	// forgotten what was acknowledged, like a standby that was behind when it was promoted.
	Server string
	// Alone reports that no other node is open on the store and that the store
	// will signal Nodes when one joins: until then the node may leave out its
	// beats, and its lease does not run out.
	Alone bool
	// Nodes are those that are not deleted, in order of Incarnation.
	Nodes []Node
	// Shards are all shards in order of ID, once SetShards was called.
	Shards []Shard
}

// RegistryStore is the part of a Store that keeps the addresses which executors registered.
// Programs read Registrations; the rest is for authors of stores.
type RegistryStore interface {
	// PutAddresses registers addresses, or refreshes them; what is known of one is
	// what was said last, and which process was there before. Of two entries for one app and
	// address the last counts.
	// Rows that others have locked are left out, and make the error ErrLocked.
	PutAddresses(ctx context.Context, regs []Registration) error
	// DropAddresses removes registrations: each whose BootID is as given, or whatever
	// it is where none is given. An absent one is no error. Locked rows are as above.
	DropAddresses(ctx context.Context, regs []Registration) error
	// Addresses returns the app's registrations refreshed within maxAge of the
	// store's clock, in order of Address, as strings.
	Addresses(ctx context.Context, app string, maxAge time.Duration) ([]Registration, error)
	// Registrations lists the registrations of all apps, also of those that have no
	// group, however old, in order of App and Address.
	Registrations(ctx context.Context, f RegistrationFilter) ([]Registration, error)
	// ForgetAddresses removes registrations that were not refreshed within maxAge of
	// the store's clock.
	ForgetAddresses(ctx context.Context, maxAge time.Duration) error
	// NoteServed stores how apps are served: with a zero Gone one is served that way, with any other
	// nobody is there for it since then. An app that is known to be unserved keeps its Gone where it
	// is given another one, and an empty By leaves the one that is known. Of two entries for an
	// app the last counts. Where one changes from unserved to served, the nodes get Signals.Nodes.
	NoteServed(ctx context.Context, apps []Served) error
	// Served returns what was noted of the apps, in order of App. One of which nothing was noted is
	// left out.
	Served(ctx context.Context, apps []string) ([]Served, error)
}

// Served says how an app is served, as far as nodes have noted it: one whose jobs or runs they have
// looked for an executor for, or that they have attached.
type Served struct {
	App string
	// By is who serves it, or has served it last; empty where nobody ever has.
	By ServedBy
	// Gone is since when nobody serves it, as nodes have seen it; zero while somebody does.
	Gone time.Time
}

// ServedBy is a kind of executors.
type ServedBy string

const (
	// ServedAttached: executors that run inside schedulers.
	ServedAttached ServedBy = "attached"
	// ServedRegistered: executors that registered, or that a Registry of the user's names.
	ServedRegistered ServedBy = "registered"
)

// Registration is one address of an executor app, as its executor has registered it.
type Registration struct {
	App string
	// Address is the executor's base address, as it came.
	Address string
	// BootID is different for each process of an executor of this module. It is empty for
	// third-party executors.
	BootID string
	// Capabilities are what the executor can do beyond XXL-JOB's protocol, such as
	// wire.CapRepeat.
	Capabilities []string
	// Updated is when it was last refreshed. The store sets it.
	Updated time.Time
	// FormerBootID is that of the process which was registered here before this one, and
	// FormerSeen when it was last refreshed: where two processes take turns at one address,
	// as behind a balancer, both are there. Empty and zero where there was none. The store
	// sets them.
	FormerBootID string
	FormerSeen   time.Time
}

// RegistrationFilter chooses registrations. Zero fields choose all.
type RegistrationFilter struct {
	App string
	// After and AfterAddress are the keyset: registrations behind this App and Address
	// only.
	After, AfterAddress string
	// Within chooses those that were refreshed within so long of the store's clock; zero is however
	// long ago.
	Within time.Duration
	// Limit is the page size; zero means 100.
	Limit int
}

// Signals are hints, each channel with a buffer of one.
type Signals struct {
	// Scan: a job or planned run that may be due earlier than known was written
	// in a shard of the incarnation, other than by a Claim.
	Scan <-chan struct{}
	// Ahead: a run that is to be kept apart until it moves was added to a shard of the
	// incarnation.
	Ahead <-chan struct{}
	// Owed: something is owed by a run of a shard of the incarnation, or a window was opened of
	// a job in one.
	Owed <-chan struct{}
	// Alarms: an alarm was inserted, or somebody has given up a rule.
	Alarms <-chan struct{}
	// Inbox: a run, a kill or a question was addressed to the incarnation.
	Inbox <-chan struct{}
	// Nodes: a node joined or left, its executors changed, it has come to fail or does
	// so no more, shards were released, or an app is served again (NoteServed).
	Nodes <-chan struct{}
	// Ended: runs ended, or a question was answered.
	Ended <-chan struct{}
}
