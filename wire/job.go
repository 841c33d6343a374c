package wire

// JobRequest names a job that is to be removed, started or stopped. It is of G4.
type JobRequest struct {
	// ID is the job's id, 32 bits wide.
	ID int64 `json:"id"`
}

// Encode appends the request.
func (r JobRequest) Encode(dst []byte) []byte { return encode(dst, r) }

// Decode reads a request.
func (r *JobRequest) Decode(src []byte) error {
	*r = JobRequest{}
	return decodeObject(src, func(key string, val value) (err error) {
		if key == "id" {
			r.ID, err = val.id32()
		}
		return err
	})
}
