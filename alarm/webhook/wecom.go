package webhook

import (
	"time"

	"github.com/xxljob/xxljob/alarm"
)

// maxWeCom is how long a text to WeCom may be, in bytes of UTF-8.
const maxWeCom = 2048

// WeCom makes an alarmer for a robot of a WeCom (企业微信) group. URL is that of the robot,
// with its key; there is no secret. Messages are of type text, call nobody by name, and are
// cut at 2,048 bytes. A robot takes 20 messages a minute; more are errors.
func WeCom(cfg Config) (*Hook, error) {
	if err := noSecret(cfg, "WeCom"); err != nil {
		return nil, err
	}
	return newHook(cfg, service{name: "WeCom", request: weComRequest, judge: judgeErrcode})
}

func weComRequest(_ *Hook, _ alarm.Message, text alarm.Text, _ time.Time) (request, error) {
	type content struct {
		Content string `json:"content"`
	}
	type message struct {
		Type string  `json:"msgtype"`
		Text content `json:"text"`
	}
	body, err := encode(message{Type: "text", Text: content{alarm.Cut(defused(text.Plain), maxWeCom)}})
	return request{body: body}, err
}
