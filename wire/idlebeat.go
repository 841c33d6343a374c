package wire

// IdleBeatRequest asks about one job.
type IdleBeatRequest struct {
	// JobID is the job's id, at most 2^31-1 for a Java peer.
	JobID int64 `json:"jobId"`
}

// Encode appends the request.
func (r IdleBeatRequest) Encode(dst []byte) []byte { return encode(dst, r) }

// Decode reads a request.
func (r *IdleBeatRequest) Decode(src []byte) error {
	*r = IdleBeatRequest{}
	return decodeObject(src, func(key string, val value) (err error) {
		if key == "jobId" {
			r.JobID, err = val.id32()
		}
		return err
	})
}
