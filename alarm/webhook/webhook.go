// Package webhook tells services over HTTP of alarms: one POST of JSON a message. New makes
// an alarmer for a receiver of your own, to which Body and the signature at Config.Secret
// are documented; DingTalk, WeCom, Feishu, Slack and PagerDuty make one for that service.
//
// An alarmer keeps no connections between messages, and has nothing to be closed.
package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/xxljob/xxljob/alarm"
	"github.com/xxljob/xxljob/internal/guard"
)

// Config says where messages go. Only URL is needed, and Secret where a service says so.
type Config struct {
	// URL is where messages are posted to: https, or http with AllowHTTP, without user
	// information and fragment, at most 4 KiB. What authorizes in its path and query is in no
	// error and in no log.
	URL string
	// Secret signs what is sent to a receiver of your own: the header X-Xxljob-Signature is
	//
	//	t=<seconds since 1970>,v1=<hex of the HMAC-SHA256 of "<t>.<body>" with Secret as key>
	//
	// The receiver should compute v1 anew, compare in constant time, and refuse a t that is
	// some minutes away. Empty means no signature. For the services, see each of them.
	Secret string
	// Format says how messages read. Nil means English, with times in UTC.
	Format *alarm.Format
	// Timeout bounds one message, with resolving, connecting and reading the answer. 0 means
	// 10 s; at most 10 min.
	Timeout time.Duration
	// AllowHTTP allows a URL of http, over which anybody on the way reads along.
	AllowHTTP bool
	// TLS is for URLs of https. Nil means the system's roots, and TLS 1.2 at least.
	TLS *tls.Config
	// AllowIP decides about each address that is about to be connected to, after its name
	// was resolved; its error ends the message. It is called concurrently. Nil means
	// wire.DefaultAllowIP, which refuses those where clouds keep their secrets and those that
	// are of no peer, and allows loopback and private ones.
	AllowIP func(to netip.AddrPort) error
	// DialContext makes the connections in place of the net package. It is given "tcp" and
	// the URL's host and port, and called concurrently. AllowIP is not asked about what it
	// connects to. Nil means a net.Dialer. A proxy in the environment is never used.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger gets a line where a template of Format has failed and a message was told in the
	// built-in words. Nil means slog.Default.
	Logger *slog.Logger
}

// Hook posts messages to one service. It is safe for concurrent use.
type Hook struct {
	service   service
	url       *url.URL
	secret    string
	format    *alarm.Format
	timeout   time.Duration
	transport *http.Transport
	logger    *slog.Logger
	concealed []string // what no error may say
}

var _ alarm.Alarmer = (*Hook)(nil)

// service is what is particular to one.
type service struct {
	name string
	// request writes a message, which may hold anything, to h.url or to what it sets in the
	// request. The text is that of the message, and safe to show.
	request func(h *Hook, m alarm.Message, text alarm.Text, now time.Time) (request, error)
	// judge looks at the body of an answer of 2xx; nil means that those are all good.
	judge func(body []byte) error
}

// request is what is posted.
type request struct {
	body  []byte
	query url.Values // added to the URL's
	sign  string     // the header X-Xxljob-Signature, if any
}

// New makes an alarmer for a receiver of your own, which gets a Body. Any answer of 2xx means
// that it has the message.
func New(cfg Config) (*Hook, error) {
	return newHook(cfg, service{name: "webhook", request: ownRequest})
}

func newHook(cfg Config, s service) (*Hook, error) {
	u, err := checkURL(cfg)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	if cfg.Timeout < 0 || cfg.Timeout > 10*time.Minute {
		return nil, fmt.Errorf("webhook: Config.Timeout is %v, and must be from 0 to 10 min", cfg.Timeout)
	}
	h := &Hook{
		service: s, url: u, secret: cfg.Secret,
		format:    cmp.Or(cfg.Format, new(alarm.Format)),
		timeout:   cmp.Or(cfg.Timeout, 10*time.Second),
		logger:    cfg.Logger,
		concealed: concealed(u, cfg.Secret),
	}
	h.transport = newTransport(cfg, h.timeout, guard.NewLog(h.log))
	return h, nil
}

func (h *Hook) log() *slog.Logger {
	if h.logger != nil {
		return h.logger
	}
	return slog.Default()
}

// String names the service and its host, and nothing that is secret.
func (h *Hook) String() string { return h.service.name + " at " + h.url.Host }

// GoString is String, so that no verb prints a secret.
func (h *Hook) GoString() string { return h.String() }

// Alarm posts a message. It returns an error unless the service has answered that it took it:
// also for a redirect, which is never followed, for 429 and 5xx, and where the service says
// in an answer of 200 what is wrong. The error has at most a short part of the answer, and
// neither the path and query of the URL nor the secret. It wraps the cause of a context that
// has ended.
func (h *Hook) Alarm(ctx context.Context, m alarm.Message) error {
	text, err := h.format.Render(m)
	if err != nil {
		h.log().Warn("xxljob: an alarm is told in built-in words", "to", h.String(), "job", alarm.Line(m.App+"/"+m.JobKey, 200), "error", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.timeout, fmt.Errorf("no answer within %v: %w", h.timeout, context.DeadlineExceeded))
	defer cancel()
	if err := h.post(ctx, m, text); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("webhook: %v: %w", h, context.Cause(ctx))
		}
		return fmt.Errorf("webhook: %v: %s", h, h.conceal(err.Error()))
	}
	return nil
}

func (h *Hook) post(ctx context.Context, m alarm.Message, text alarm.Text) error {
	r, err := h.service.request(h, m, text, time.Now())
	if err != nil {
		return err
	}
	to := *h.url
	if r.query != nil {
		query := to.Query()
		for name, values := range r.query {
			query[name] = values
		}
		to.RawQuery = query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(r.body))
	if err != nil {
		return errors.New("no request can be made of Config.URL")
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "xxljob-alarm")
	if r.sign != "" {
		req.Header.Set("X-Xxljob-Signature", r.sign)
	}
	res, err := h.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	return h.judge(res)
}
