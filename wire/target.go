package wire

import "net/url"

// target is one endpoint of a peer. It never changes.
type target struct {
	base, endpoint string
	text           string // both together
	url            *url.URL
}

// target returns the endpoint below a base. A client calls the same one most of the time: that
// one is remembered. The error is a *CallError.
func (p *peer) target(base, endpoint string) (*target, error) {
	if last := p.last.Load(); last != nil && last.endpoint == endpoint && last.base == base {
		return last, nil
	}
	to := &target{base: base, endpoint: endpoint, text: base + endpoint}
	var err error
	if to.url, err = url.Parse(to.text); err != nil {
		return nil, p.failed(&CallError{URL: to.text, Err: err})
	}
	p.last.Store(to)
	return to, nil
}
