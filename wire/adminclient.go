package wire

// A remote admin.

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
)

// AdminClient is a remote admin, called over HTTP. It is safe for concurrent
// use, starts no goroutine of its own, and needs no closing. Its errors are
// those of ExecutorClient.
type AdminClient struct {
	peer  *peer
	other string      // the other base: with the context path, or without it
	moved atomic.Bool // other has answered, and peer.base was not found
	form  atomic.Int32
}

var _ JobAdmin = (*AdminClient)(nil)

// contextPath is where admins up to 3.4.0 are mounted; later ones are at the
// root.
const contextPath = "xxl-job-admin/"

// NewAdminClient makes a client for the admin at a base address, such as
// http://10.0.0.1:8080/xxl-job-admin, with or without the slash. When the admin
// is not found there, it is looked for on the same host with the path
// /xxl-job-admin added or taken away, for the path has changed with 3.4.1 and
// both are about. The error says what is wrong with the address, the token or
// the app, without repeating them.
func NewAdminClient(addr string, cfg ClientConfig) (*AdminClient, error) {
	p, err := newPeer(addr, cfg)
	if err != nil {
		return nil, err
	}
	c := &AdminClient{peer: p, other: p.base + contextPath}
	if bare, ok := strings.CutSuffix(p.base, "/"+contextPath); ok {
		c.other = bare + "/"
	}
	return c, nil
}

// Registry implements Admin.
func (c *AdminClient) Registry(ctx context.Context, req RegistryRequest) (Return, error) {
	return c.call(ctx, "registry", req.Encode(nil))
}

// RegistryRemove implements Admin.
func (c *AdminClient) RegistryRemove(ctx context.Context, req RegistryRequest) (Return, error) {
	return c.call(ctx, "registryRemove", req.Encode(nil))
}

// The forms of callbacks that an admin has accepted.
const (
	formUnknown = iota
	formList
	formObject
)

// Callback implements Admin. G4 takes results in another form than its
// predecessors, and refuses theirs as a whole: what is refused in one form, for
// a reason that may be the form, is sent in the other. The form that an admin
// has accepted is remembered.
//
// The caller keeps a batch at a size that admins take: 50 results, as Java
// executors do, and MaxCallbacks or 4 MiB at most.
func (c *AdminClient) Callback(ctx context.Context, results []CallbackRequest) (Return, error) {
	known := c.form.Load()
	form := CallbackList
	if known == formObject {
		form = CallbackObject
	}
	first, err := c.callback(ctx, form, results)
	if err != nil || first.OK() || !maybeForm(first.Msg, known != formUnknown) {
		return first, err
	}
	second, err := c.callback(ctx, 1-form, results)
	if err == nil && second.OK() {
		return second, nil
	}
	return first, nil // no error: refused, and the second was no better
}

// callback sends results in one form, and remembers the form of what was
// accepted.
func (c *AdminClient) callback(ctx context.Context, form CallbackForm, results []CallbackRequest) (Return, error) {
	r, err := c.call(ctx, "callback", EncodeCallback(nil, form, results))
	if err == nil && r.OK() {
		c.form.Store(formList + int32(form))
	}
	return r, err
}

// maybeForm reports whether results may have been refused for their form. Of an
// admin that has accepted a form before, only the words of a failed parser are
// taken for it.
func maybeForm(msg string, known bool) bool {
	switch msg {
	case MsgTokenWrong, MsgIdentityEmpty, MsgIdentityInvalid, MsgMethod, MsgBodyEmpty, MsgTooMany:
		return false
	}
	if !known {
		return true
	}
	prefix, _, _ := strings.Cut(MsgInvokeError, "%s")
	return strings.HasPrefix(msg, prefix) || strings.Contains(msg, "JsonSyntaxException") || strings.Contains(msg, "BEGIN_")
}

// AddJob implements JobAdmin, with admins of G4.
func (c *AdminClient) AddJob(ctx context.Context, req AddJobRequest) (Return, error) {
	return c.callOnce(ctx, "addJob", req.Encode(nil))
}

// UpdateJob implements JobAdmin, with admins of G4.
func (c *AdminClient) UpdateJob(ctx context.Context, req UpdateJobRequest) (Return, error) {
	return c.callOnce(ctx, "updateJob", req.Encode(nil))
}

// RemoveJob implements JobAdmin, with admins of G4.
func (c *AdminClient) RemoveJob(ctx context.Context, req JobRequest) (Return, error) {
	return c.callOnce(ctx, "removeJob", req.Encode(nil))
}

// StartJob implements JobAdmin, with admins of G4.
func (c *AdminClient) StartJob(ctx context.Context, req JobRequest) (Return, error) {
	return c.callOnce(ctx, "startJob", req.Encode(nil))
}

// StopJob implements JobAdmin, with admins of G4.
func (c *AdminClient) StopJob(ctx context.Context, req JobRequest) (Return, error) {
	return c.callOnce(ctx, "stopJob", req.Encode(nil))
}

// TriggerJob implements JobAdmin, with admins of G4.
func (c *AdminClient) TriggerJob(ctx context.Context, req TriggerJobRequest) (Return, error) {
	return c.callOnce(ctx, "triggerJob", req.Encode(nil))
}

// bases returns the base that has answered last, and the other.
func (c *AdminClient) bases() (base, other string) {
	if c.moved.Load() {
		return c.other, c.peer.base
	}
	return c.peer.base, c.other
}

// callOnce posts a request that must not be done twice.
func (c *AdminClient) callOnce(ctx context.Context, endpoint string, body []byte) (Return, error) {
	base, _ := c.bases()
	return c.peer.call(ctx, base, "api/"+endpoint, body)
}

// call posts a request that may be done twice: one that finds nothing at its
// base goes to the other one too.
func (c *AdminClient) call(ctx context.Context, endpoint string, body []byte) (Return, error) {
	base, other := c.bases()
	r, err := c.peer.call(ctx, base, "api/"+endpoint, body)
	if !nothingThere(err) {
		return r, err
	}
	if r, err := c.peer.call(ctx, other, "api/"+endpoint, body); err == nil {
		c.moved.Store(other == c.other)
		return r, nil
	}
	return r, err
}

// nothingThere reports whether an admin is elsewhere: the path is not found, or
// leads somewhere else.
func nothingThere(err error) bool {
	var call *CallError
	return errors.As(err, &call) && (call.Status == 404 || call.Status >= 300 && call.Status < 400)
}
