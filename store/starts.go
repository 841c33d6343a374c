package store

// StartStatus is what became of a Start. Where several would do, it is the first
// of StartFenced, StartGone, StartStale, StartNoNode and StartBusy.
type StartStatus uint8

const (
	// StartOK: the run is started (or refused, as asked).
	StartOK StartStatus = iota
	// StartGone: the run is not planned any more, or does not exist.
	StartGone
	// StartStale: the job has another version, or is stopped, or has no
	// schedule any more; read it again.
	StartStale
	// StartNoNode: the node of an attached address has left, or is not there.
	StartNoNode
	// StartBusy: another run of the job is at the address.
	StartBusy
	// StartFenced: the shard's epoch is another.
	StartFenced
	// StartLocked: somebody else has the row locked; try again in the next pass.
	StartLocked
)

// Dispatch says that a remote executor has accepted a run.
type Dispatch struct {
	RunID int64
	Owner string
	Token int64
	// BootID, where it is not empty, is stored as the run's: the process that has accepted it says
	// so.
	BootID string
	Msg    string
}

// Readdress moves a started run to another address.
type Readdress struct {
	RunID   int64
	Shard   int
	Epoch   int64
	Owner   string
	Token   int64
	Address string
	// BootID is stored as the run's.
	BootID string
	// Msg is added to the TriggerMsg, as a line.
	Msg string
}
