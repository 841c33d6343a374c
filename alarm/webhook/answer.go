package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxAnswer is how much of an answer is read, in bytes.
const maxAnswer = 64 << 10

// judge says whether an answer means that the message was taken.
func (h *Hook) judge(res *http.Response) error {
	good := res.StatusCode >= 200 && res.StatusCode < 300
	if good && h.service.judge == nil {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case good && err != nil:
		return err
	case good:
		if err := h.service.judge(body); err != nil {
			return fmt.Errorf("answered %d with %w: %s", res.StatusCode, err, body)
		}
		return nil
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return fmt.Errorf("answered %d: redirects are not followed", res.StatusCode)
	}
	return fmt.Errorf("answered %d: %s", res.StatusCode, body)
}

// code is a number by which services say in the body whether they took a message: 0 if so.
// Feishu has two names for it, of which one is enough.
type code struct {
	DingTalk *int64 `json:"errcode"` // and WeCom
	Feishu   *int64 `json:"code"`
	Old      *int64 `json:"StatusCode"` // of Feishu
}

func judgeErrcode(body []byte) error {
	c, err := codeIn(body)
	if err != nil {
		return err
	}
	return taken(c.DingTalk)
}

func judgeFeishu(body []byte) error {
	c, err := codeIn(body)
	switch {
	case err != nil:
		return err
	case c.Feishu != nil:
		return taken(c.Feishu)
	}
	return taken(c.Old)
}

func codeIn(body []byte) (c code, err error) {
	if json.Unmarshal(body, &c) != nil {
		return c, errors.New("no JSON of the service")
	}
	return c, nil
}

func taken(n *int64) error {
	switch {
	case n == nil:
		return errors.New("no code in it")
	case *n != 0:
		return fmt.Errorf("code %d", *n)
	}
	return nil
}
