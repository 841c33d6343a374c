package xxljobtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/xxljob/xxljob/wire"
)

// maxBody is the most that an executor reads of a request, in bytes.
const maxBody = 5 << 20

// serve checks a request in XXL-JOB's order: method, path, token, whether the path is known,
// body.
func (e *Executor) serve(w http.ResponseWriter, r *http.Request) {
	if !e.begin() {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	defer e.work.Done()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	path := "/" + strings.TrimPrefix(strings.TrimPrefix(r.RequestURI, strings.TrimSuffix(e.url.EscapedPath(), "/")), "/")
	switch refused := e.o.Generation.identify(r.Header, e.o.App, e.o.Token); {
	case r.Method != http.MethodPost:
		e.refuse(w, path, wire.MsgMethod)
	case path == "/":
		e.refuse(w, path, wire.MsgURIEmpty)
	case refused != "":
		e.refuse(w, path, refused)
	case path == e.o.Generation.runPath():
		e.run(w, r, body)
	case path == pathRun || path == pathTrigger:
		e.write(w, refusal(fmt.Sprintf(wire.MsgURINotFound, path))) // how schedulers find the generation
	default:
		answer, known := e.ask(path, body)
		if !known {
			e.refuse(w, path, fmt.Sprintf(wire.MsgURINotFound, path))
			return
		}
		e.write(w, answer)
	}
}

// ask answers requests other than those that start a run.
func (e *Executor) ask(path string, body []byte) (answer reply, known bool) {
	switch path {
	case "/beat":
		return e.o.Generation.success(nil), true
	case "/idleBeat":
		return read(body, e.idleBeat), true
	case "/kill":
		return read(body, e.kill), true
	case "/log":
		return read(body, e.readLog), true
	}
	return reply{}, false
}

// run takes a request to start a run. It does what the test has decided even if the caller
// has hung up meanwhile.
func (e *Executor) run(w http.ResponseWriter, r *http.Request, body []byte) {
	var req wire.TriggerRequest
	if err := decode(body, &req); err != nil {
		e.write(w, refusal(err.Error()))
		return
	}
	o, f := e.arrived(req)
	a := e.decide(r.Context(), f, o)
	if !e.sleep(a.late) {
		panic(http.ErrAbortHandler)
	}
	switch a.lost {
	case cut:
		e.reportLater(o, a)
		panic(http.ErrAbortHandler)
	case hung:
		e.reportLater(o, a)
		<-r.Context().Done() // the caller has hung up, or the executor is closed
		panic(http.ErrAbortHandler)
	}
	answer := e.o.Generation.success(nil)
	if a.refuse {
		answer = refusal(a.refused)
	}
	e.write(w, answer)
	_ = http.NewResponseController(w).Flush() // so that the result comes after the answer
	e.reportLater(o, a)
}

// decide calls the test's function. The run is no longer open if it is refused or the function
// does not return. A panic fails the test and cuts the connection.
func (e *Executor) decide(ctx context.Context, f AnswerFunc, o *openRun) (a Answer) {
	a.refuse = true
	defer func() {
		if a.refuse {
			e.endOnly(o)
		}
		if p := recover(); p != nil {
			e.t.Errorf("xxljobtest: executor of app %q: the function that decides about run %d: panic: %v\n%s", e.o.App, o.LogID, p, debug.Stack())
			panic(http.ErrAbortHandler)
		}
	}()
	return f(ctx, o.ExecutorRun)
}

// sleep waits, and reports false if the executor is closed before the time is over.
func (e *Executor) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.ctx.Done():
		return false
	}
}

// refuse refuses a request and logs it, since a test has no other way to see it.
func (e *Executor) refuse(w http.ResponseWriter, path, msg string) {
	e.logf("%s is refused: %s", path, msg)
	e.write(w, refusal(msg))
}

// write sends an answer, with the content type of XXL-JOB's executors.
func (e *Executor) write(w http.ResponseWriter, answer reply) {
	body := e.o.Generation.encode(answer)
	w.Header().Set("Content-Type", "text/html;charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the caller may have gone
}

// message is the body of a request.
type message[T any] interface {
	*T
	Decode(src []byte) error
}

// read decodes a request and answers it by f.
func read[T any, M message[T]](body []byte, f func(T) reply) reply {
	var req T
	if err := decode[T, M](body, &req); err != nil {
		return refusal(err.Error())
	}
	return f(req)
}

// decode decodes a request. Its errors are the answer of a Java executor, without the stack
// trace.
func decode[T any, M message[T]](body []byte, req M) error {
	if text := strings.TrimSpace(string(body)); text == "" || text == "null" {
		return fmt.Errorf(wire.MsgRequestError, "java.lang.NullPointerException")
	}
	if err := req.Decode(body); err != nil {
		return fmt.Errorf(wire.MsgRequestError, "com.google.gson.JsonSyntaxException: "+err.Error())
	}
	return nil
}
