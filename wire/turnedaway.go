package wire

// Statuses of HTTP that come from what stands between an admin and an executor.

import (
	"errors"
	"net/http"
	"strings"
)

// TurnedAway reports whether err is of a call that something in front of the peer has answered,
// and not let through: a proxy that wants a login, a firewall, a limit, a path that leads
// nowhere. No executor ever gives such a status, so the request has not come to one, unless
// what answers is at fault. 502, 503 and 504 are not among them: the peer may have the request.
func TurnedAway(err error) bool {
	var call *CallError
	return errors.As(err, &call) && (turnsAway(call.Status) || call.Status == http.StatusForbidden && !call.ofExecutor)
}

// turnsAway reports whether a status is one that nobody gives who has looked at the request. A
// 403 may be an executor's own that somebody has put a check in front of: it shows that.
func turnsAway(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
		http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusLengthRequired, http.StatusRequestEntityTooLarge,
		http.StatusRequestURITooLong, http.StatusUnsupportedMediaType, http.StatusUpgradeRequired, http.StatusTooManyRequests, http.StatusRequestHeaderFieldsTooLarge:
		return true
	}
	return false
}

// isOfExecutor reports whether an answer has a header of the protocol, or a message of it for
// a body. One that cannot be read to its end may be.
func isOfExecutor(resp *http.Response) bool {
	for name := range resp.Header {
		if strings.HasPrefix(name, "Xxl-") {
			return true
		}
	}
	body, err := readAnswer(nil, resp.Body, firstRead)
	var r Return
	return err != nil || r.Decode(body) == nil && r.Code != 0
}

// statusError is the error about an answer with another status than 200.
func statusError(url string, resp *http.Response) *CallError {
	var from []string
	for _, name := range []string{"Server", "Via", "Location"} {
		if v := strings.Join(resp.Header.Values(name), ", "); v != "" {
			from = append(from, name+": "+v)
		}
	}
	return &CallError{URL: url, Sent: true, Status: resp.StatusCode, From: strings.Join(from, "; "), ofExecutor: resp.StatusCode == http.StatusForbidden && isOfExecutor(resp)}
}
