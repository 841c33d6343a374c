package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
)

// payload is the body of a request, which may be sent several times.
type payload struct {
	bytes []byte
	held  int // how many attempts may still read it
}

// attempt is what one request at most needs beside its http.Request. It is used again once nothing
// of net/http refers to it any more: when the answer is there, and the request was written to its
// end. Of any other attempt net/http may read the body, or call the hooks, after its error.
type attempt struct {
	seen   evidence
	reader bytes.Reader
	body   io.ReadCloser // of reader, of a type by which net/http knows that it is in memory
}

// attempt returns one for a body. The caller gives it back by settled, or leaves it. Where ctx has
// hooks of the caller's it is a new one, which these go into: net/http dials with the hooks of a
// request, and goes on with that when the request has got another connection and is over.
func (t *Transport) attempt(ctx context.Context, body *payload) *attempt {
	var a *attempt
	had := false
	if httptrace.ContextClientTrace(ctx) == nil {
		a, had = t.attempts.Get().(*attempt)
	}
	if !had {
		a = &attempt{}
		a.body = io.NopCloser(&a.reader)
		a.seen.hooks = httptrace.ClientTrace{GotConn: a.seen.gotConn, WroteRequest: a.seen.wroteRequest}
	}
	a.reader.Reset(body.bytes)
	body.held++
	return a
}

// settled takes an attempt back whose answer has been read to its end.
func (t *Transport) settled(a *attempt, body *payload) {
	if !a.seen.isOver() {
		return // the answer came before the end of the request, say
	}
	body.held--
	a.seen.reset()
	a.reader.Reset(nil)
	t.attempts.Put(a)
}

// request makes a request that the transport cannot send a second time: it has no GetBody.
// A transport only reads the header and the URL, so all requests share them.
func (a *attempt) request(ctx context.Context, p *peer, to *target) *http.Request {
	req := http.Request{
		Method: http.MethodPost, URL: to.url, Host: to.url.Host,
		Header: p.header, Body: a.body, ContentLength: a.reader.Size(),
	}
	return req.WithContext(a.seen.watch(ctx))
}
