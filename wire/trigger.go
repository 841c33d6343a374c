package wire

// GlueBean is the glue type of a job whose handler is a function registered under
// a name. It is the only type this module runs.
const GlueBean = "BEAN"

// TriggerRequest hands one run to an executor.
type TriggerRequest struct {
	// JobID is the job's id, at most 2^31-1 for a Java peer.
	JobID int64 `json:"jobId"`
	// ExecutorHandler is the name of the handler.
	ExecutorHandler string `json:"executorHandler,omitempty"`
	// ExecutorParams is the parameter. Absent and empty are the same.
	ExecutorParams string `json:"executorParams,omitempty"`
	// ExecutorBlockStrategy says what to do when the job still runs:
	// SERIAL_EXECUTION, DISCARD_LATER or COVER_EARLY. Any other value means serial.
	ExecutorBlockStrategy string `json:"executorBlockStrategy"`
	// ExecutorTimeout is in seconds, 32 bits wide. Zero and less mean none.
	ExecutorTimeout int `json:"executorTimeout"`
	// LogID is the run's id.
	LogID int64 `json:"logId"`
	// LogDateTime is when the run was triggered, in ms. It decides the day
	// directory of the run's log and comes back in the callback.
	LogDateTime int64 `json:"logDateTime"`
	// GlueType is GlueBean, or the language of GlueSource.
	GlueType string `json:"glueType"`
	// GlueSource is the text of a script.
	GlueSource string `json:"glueSource"`
	// GlueUpdatetime is the version of the script, in ms.
	GlueUpdatetime int64 `json:"glueUpdatetime"`
	// BroadcastIndex is the number of this shard, from 0, 32 bits wide.
	BroadcastIndex int `json:"broadcastIndex"`
	// BroadcastTotal is the number of shards, 1 when the job is not sharded.
	BroadcastTotal int `json:"broadcastTotal"`

	// ScheduledAt is the instant the run was planned for, in ms. Other peers do
	// not send it (0) and ignore it.
	ScheduledAt int64 `json:"scheduledAt,omitempty"`
	// Attempt counts the attempts of one trigger as the admin counts them.
	// Other peers do not send it (0) and ignore it.
	Attempt int `json:"attempt,omitempty"`
}
