package wire

// Progress is how far a run is, by what its handler has said last. The zero value is that it
// has said nothing. Executors of ours send it; other peers do not, and ignore it.
type Progress struct {
	// Percent is from 0 to 100. Decoded, it may be any number of 32 bits.
	Percent int `json:"percent"`
	// Text is a few words about it, absent when empty.
	Text string `json:"text,omitempty"`
}

// progress reads a Progress. What is not understood says nothing, for a peer's own key of
// that name must not cost a result or a log.
func (v value) progress() (p Progress) {
	if v[0] != '{' {
		return p
	}
	err := v.object(func(key string, val value) (err error) {
		switch key {
		case "percent":
			p.Percent, err = val.int32()
		case "text":
			p.Text, err = val.text()
		}
		return err
	})
	if err != nil {
		return Progress{}
	}
	return p
}
