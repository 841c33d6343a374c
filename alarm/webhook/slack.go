package webhook

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/xxljob/xxljob/alarm"
)

// maxSlack is how long the text of a section may be, in characters.
const maxSlack = 3000

// Slack makes an alarmer for an incoming webhook of Slack, or of a service that takes the
// same messages. URL is that of the webhook; there is no secret. A message is one section,
// with the subject as the text of notifications; it calls nobody by name, and is cut at
// 3,000 characters.
func Slack(cfg Config) (*Hook, error) {
	if err := noSecret(cfg, "Slack"); err != nil {
		return nil, err
	}
	return newHook(cfg, service{name: "Slack", request: slackRequest})
}

func slackRequest(_ *Hook, _ alarm.Message, text alarm.Text, _ time.Time) (request, error) {
	type content struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Verbatim bool   `json:"verbatim"` // names in it call nobody
	}
	type block struct {
		Type string  `json:"type"`
		Text content `json:"text"`
	}
	type message struct {
		Text   string  `json:"text"`
		Blocks []block `json:"blocks"`
	}
	section := block{Type: "section", Text: content{Type: "mrkdwn", Text: slackText(text.Plain), Verbatim: true}}
	body, err := encode(message{Text: slackText(text.Subject), Blocks: []block{section}})
	return request{body: body}, err
}

// slackText escapes the characters that begin marks of Slack, and cuts between what it has
// written for one of them and the next. Characters count as JavaScript counts them.
func slackText(s string) string {
	var out strings.Builder
	end, n := 0, 0 // where "…" may follow, and characters
	for _, r := range nameless(s) {
		piece := string(r)
		switch r {
		case '&':
			piece = "&amp;"
		case '<':
			piece = "&lt;"
		case '>':
			piece = "&gt;"
		}
		for _, c := range piece {
			n += utf16.RuneLen(c)
		}
		if n > maxSlack {
			return out.String()[:end] + "…"
		}
		out.WriteString(piece)
		if n < maxSlack {
			end = out.Len()
		}
	}
	return out.String()
}

// noSecret refuses a secret that would not be used.
func noSecret(cfg Config, name string) error {
	if cfg.Secret != "" {
		return fmt.Errorf("webhook: %s signs nothing: Config.Secret must be empty, what authorizes is in Config.URL", name)
	}
	return nil
}
