package sink

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/xxljob/xxljob/internal/test/chaos/audit"
)

// HTTP is a server to which alarms are posted as JSON.
type HTTP struct {
	*book
	listener net.Listener
	server   *http.Server
}

// ListenHTTP starts one on a port of its own.
func ListenHTTP(name string, seed uint64) (*HTTP, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &HTTP{book: newBook(name, seed), listener: ln}
	s.server = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}
	go func() { _ = s.server.Serve(ln) }() // until Close
	return s, nil
}

// URL is where alarms are to be posted.
func (s *HTTP) URL() string { return "http://" + s.listener.Addr().String() + "/alarms" }

// Close ends the server and all connections.
func (s *HTTP) Close() error { return s.server.Close() }

// posted is the part of a message that is looked at.
type posted struct {
	ID      string `json:"id"`
	App     string `json:"app"`
	Cause   string `json:"cause"`
	Trouble string `json:"trouble"`
	Job     int64  `json:"job_id,string"`
	Count   int    `json:"count"`
	Events  []struct {
		Cause   string    `json:"cause"`
		Run     int64     `json:"run_id,string"`
		Instant time.Time `json:"instant"`
	} `json:"events"`
}

func (s *HTTP) serve(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return // who sent it is gone
	}
	var p posted
	err = json.Unmarshal(text, &p)
	if err == nil && ofTrouble(p.ID) {
		t := audit.Told{Cause: p.Cause, Trouble: p.Trouble, App: p.App}
		t.Message, t.Alarm = troubleOf(p.ID)
		s.accept(t)
		return
	}
	alarm, err2 := alarmOf(p.ID)
	if err != nil || err2 != nil || len(p.Events) != 1 || p.Count != 1 {
		s.accept(audit.Told{Cause: "no message of one event: " + strconv.Quote(string(text))})
		return
	}
	switch s.mood(p.Job) {
	case refuses:
		http.Error(w, "not now", http.StatusInternalServerError)
		return
	case hangs:
		<-r.Context().Done()
		return
	}
	e := p.Events[0]
	s.accept(audit.Told{Alarm: alarm, Run: e.Run, Cause: e.Cause, Instant: e.Instant.UnixMilli()})
}
