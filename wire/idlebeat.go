package wire

// IdleBeatRequest asks about one job, and with a LogID about one run of it.
type IdleBeatRequest struct {
	// JobID is the job's id, at most 2^31-1 for a Java peer.
	JobID int64 `json:"jobId"`

	// LogID, when not zero, asks about this run: an executor of ours says in
	// Return.RunState what it knows of it, whatever else the job does, and refuses
	// from then on what it has said that it does not know. Other peers do not send
	// these keys, ignore them, and answer about the job.
	LogID int64 `json:"logId,omitempty"`
	// LogDateTime and StartToken are those of the run's TriggerRequest. The token may
	// be that of a later owner of the run who has not sent it.
	LogDateTime int64 `json:"logDateTime,omitempty"`
	StartToken  int64 `json:"startToken,omitempty"`
	// StartedAgo is how long ago the run was started, in ms: an executor that may have
	// forgotten what it was sent then says so.
	StartedAgo int64 `json:"startedAgo,omitempty"`
	// BootID is the boot id of the process that the run was started for: that one was
	// there then, however long ago it says that it was.
	BootID string `json:"bootId,omitempty"`
}

// Encode appends the request.
func (r IdleBeatRequest) Encode(dst []byte) []byte { return encode(dst, r) }

// Decode reads a request.
func (r *IdleBeatRequest) Decode(src []byte) error {
	*r = IdleBeatRequest{}
	return decodeObject(src, func(key string, val value) (err error) {
		switch key {
		case "jobId":
			r.JobID, err = val.id32()
		case "logId":
			r.LogID, err = val.int64()
		case "logDateTime":
			r.LogDateTime, err = val.int64()
		case "startToken":
			r.StartToken, err = val.int64()
		case "startedAgo":
			r.StartedAgo, err = val.int64()
		case "bootId":
			r.BootID, err = val.text()
		}
		return err
	})
}
