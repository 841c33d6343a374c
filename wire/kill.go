package wire

// KillRequest stops the runs of one job.
type KillRequest struct {
	// JobID is the job's id, at most 2^31-1 for a Java peer.
	JobID int64 `json:"jobId"`
	// LogID, when not zero, stops only the run with this id. Other peers do not
	// know the key and stop everything of the job.
	LogID int64 `json:"logId,omitempty"`
	// LogDateTime is the run's TriggerRequest.LogDateTime: a run with the same LogID
	// and another date is another admin's, or an earlier life of its database's, and
	// is left alone. Zero is any date. Other peers do not know the key.
	LogDateTime int64 `json:"logDateTime,omitempty"`
	// Reason replaces StopKill in the result. Other peers do not know the key.
	Reason string `json:"reason,omitempty"`
}

// Encode appends the request.
func (r KillRequest) Encode(dst []byte) []byte { return encode(dst, r) }

// Decode reads a request.
func (r *KillRequest) Decode(src []byte) error {
	*r = KillRequest{}
	return decodeObject(src, func(key string, val value) (err error) {
		switch key {
		case "jobId":
			r.JobID, err = val.id32()
		case "logId":
			r.LogID, err = val.int64()
		case "logDateTime":
			r.LogDateTime, err = val.int64()
		case "reason":
			r.Reason, err = val.text()
		}
		return err
	})
}
