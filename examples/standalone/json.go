package main

import (
	"errors"

	"github.com/xxljob/xxljob/jobfile"
)

// parseJSON reads a file of JSON, such as the console exports. Jobs and keys are checked by that.
func (p *parser) parseJSON(data []byte) {
	jobs, err := jobfile.Parse(data, jobfile.Rules{App: appName})
	for _, j := range jobs {
		p.add(j.Line, j.Job)
	}
	if faults, ok := errors.AsType[jobfile.Error](err); ok {
		for _, f := range faults {
			p.fault(f.Line, f.Column, "%s", f.Text)
		}
	}
}
