package webhook

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/alarm"
)

// pagerDutyURL is where PagerDuty takes events.
const pagerDutyURL = "https://events.pagerduty.com/v2/enqueue"

// PagerDuty makes an alarmer for the Events API v2 of PagerDuty, or of a service that takes
// the same events. Secret is the routing key of the integration, and needed. URL is that of
// PagerDuty if it is empty.
//
// A message about a job triggers an alert, of which there is one a job, whatever the rule, and
// Recovered resolves it. So the rule should tell of Recovered too. A trouble is an alert of its
// own for each kind, app and node, and its end resolves it. Schedulers that share a
// routing key share the alerts of jobs with the same app and key. Severity is "warning" for
// Attempt and Late, and "error" for the others. The details are a Body.
func PagerDuty(cfg Config) (*Hook, error) {
	if cfg.Secret == "" {
		return nil, errors.New("webhook: PagerDuty takes its routing key in Config.Secret, which is empty")
	}
	cfg.URL = cmp.Or(cfg.URL, pagerDutyURL)
	return newHook(cfg, service{name: "PagerDuty", request: pagerDutyRequest})
}

type (
	pagerDutyEvent struct {
		RoutingKey string            `json:"routing_key"`
		Action     string            `json:"event_action"`
		DedupKey   string            `json:"dedup_key"`
		Payload    *pagerDutyPayload `json:"payload,omitempty"`
		Client     string            `json:"client,omitempty"`
		ClientURL  string            `json:"client_url,omitempty"`
	}
	pagerDutyPayload struct {
		Summary   string `json:"summary"` // at most 1,024 characters; a subject has fewer
		Source    string `json:"source"`
		Severity  string `json:"severity"`
		Timestamp string `json:"timestamp,omitempty"`
		Component string `json:"component,omitempty"`
		Group     string `json:"group,omitempty"`
		Class     string `json:"class,omitempty"`
		Details   Body   `json:"custom_details"`
	}
)

func pagerDutyRequest(h *Hook, m alarm.Message, text alarm.Text, _ time.Time) (request, error) {
	e := pagerDutyEvent{RoutingKey: h.secret, Action: "resolve", DedupKey: dedupKey(m)}
	m = alarm.Clean(m)
	if !m.Cause.Good() {
		m.Emails = nil
		e.Action, e.Client, e.ClientURL = "trigger", "xxljob", h.format.Link(m)
		e.Payload = &pagerDutyPayload{
			Summary: text.Subject, Source: cmp.Or(m.App, "xxljob"), Severity: severity(m.Cause), Timestamp: stamp(m.Last),
			Component: m.JobKey, Group: m.App, Class: string(m.Cause), Details: bodyOf(m, text, e.ClientURL),
		}
	}
	body, err := encode(e)
	return request{body: body}, err
}

func severity(c alarm.Cause) string {
	if c == alarm.Attempt || c == alarm.Late {
		return "warning"
	}
	return "error"
}

// dedupKey names the alert of a job in at most 255 characters. Its message is as it came: what
// would be cut or left out tells jobs apart too, by a hash.
func dedupKey(m alarm.Message) string {
	job := m.App + "/" + m.JobKey
	if m.JobKey == "" {
		job = m.App + "/#" + strconv.FormatInt(m.JobID, 10)
	}
	if m.Trouble != "" {
		hash := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", m.Trouble, m.App, m.Node))
		return "xxljob/trouble/" + alarm.Line(m.Trouble, 64) + "/" + hex.EncodeToString(hash[:16])
	}
	shown := alarm.Line(job, 200)
	if shown == job && !strings.Contains(m.App, "/") && !strings.HasPrefix(m.JobKey, "#") {
		return "xxljob/" + job
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", m.App, m.JobKey, job))
	return "xxljob/" + alarm.Cut(shown, 150) + "/" + hex.EncodeToString(hash[:16])
}
