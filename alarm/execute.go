package alarm

import (
	"fmt"
	"io"
)

// template is one of either kind.
type template interface {
	Name() string
	Execute(w io.Writer, data any) error
}

// execute returns what a template writes. One that panics, or writes more than limit bytes,
// has failed.
func execute(t template, v View, limit int) (s string, err error) {
	out := bounded{limit: limit}
	defer func() {
		if p := recover(); p != nil {
			s, err = "", fmt.Errorf("alarm: template %s: panic: %v", t.Name(), p)
		}
	}()
	if err := t.Execute(&out, v); err != nil {
		return "", fmt.Errorf("alarm: template %s: %w", t.Name(), err)
	}
	return string(out.text), nil
}

// bounded takes as much as a text may be long.
type bounded struct {
	text  []byte
	limit int
}

// Write fails where the text becomes too long, which ends the template.
func (b *bounded) Write(p []byte) (int, error) {
	if len(b.text)+len(p) > b.limit {
		return 0, fmt.Errorf("more than %d bytes", b.limit)
	}
	b.text = append(b.text, p...)
	return len(p), nil
}
