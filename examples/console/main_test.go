package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// serve runs the service until the test ends, and returns its address.
func serve(t *testing.T, p provider) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, l, p) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String()
}

// visitor is a browser without scripts.
type visitor struct {
	*testing.T
	client http.Client
	page   string
	at     *url.URL
	status int
}

func visit(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{T: t, client: http.Client{Jar: jar, Timeout: 10 * time.Second}}
}

func (v *visitor) sees(res *http.Response, err error) *visitor {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		v.Fatal(err)
	}
	v.page, v.at, v.status = string(body), res.Request.URL, res.StatusCode
	return v
}

func (v *visitor) get(to string) *visitor { v.Helper(); return v.sees(v.client.Get(to)) }
func (v *visitor) post(to string, form url.Values) *visitor {
	v.Helper()
	return v.sees(v.client.PostForm(to, form))
}

// is checks where the visitor is, and what the page says.
func (v *visitor) is(path string, status int, says ...string) *visitor {
	v.Helper()
	if v.at.Path != path || v.status != status {
		v.Errorf("at %s with %d, want %s with %d: %s", v.at, v.status, path, status, v.page)
	}
	for _, text := range says {
		if !strings.Contains(v.page, text) {
			v.Errorf("%s does not say %q: %s", v.at, text, v.page)
		}
	}
	return v
}

// TestUsersOfTheService: who is logged in at the service is so in the console, with the rights
// that it gives.
func TestUsersOfTheService(t *testing.T) {
	self := serve(t, provider{})
	v := visit(t)
	v.get(self+"/jobs/jobs").is("/login", 200, "Shop")
	v.post(self+"/login", url.Values{"name": {"ann"}, "password": {"wrong"}}).is("/login", 422)
	v.post(self+"/login", url.Values{"name": {"ann"}, "password": {"ann's trial"}}).is("/jobs/overview", 200, "Remind of open carts", "Ann")
	v.get(self+"/jobs/jobs").is("/jobs/jobs", 200, "jobs/new")
	v.get(self+"/jobs/setup").is("/jobs/setup", 404) // there are no accounts
	v.get(self+"/jobs/login").is("/jobs/login", 404)
	bob := visit(t)
	bob.post(self+"/login", url.Values{"name": {"bob"}, "password": {"bob's trial"}}).is("/jobs/overview", 200, "Remind of open carts")
	bob.get(self+"/jobs/jobs/new").is("/jobs/jobs/new", 403)
	forged, err := http.NewRequest(http.MethodPost, self+"/logout", nil)
	if err != nil {
		t.Fatal(err)
	}
	forged.Header.Set("Sec-Fetch-Site", "cross-site")
	bob.sees(bob.client.Do(forged)).is("/logout", 403)
	bob.post(self+"/logout", nil).is("/login", 200)
	bob.get(self+"/jobs/jobs").is("/login", 200)
}

// TestOpenID: an OpenID provider says who it is, and which groups.
func TestOpenID(t *testing.T) {
	idp := newIDP(t)
	self := serve(t, provider{Issuer: idp.URL, Client: "xxljob", Secret: "s3cret"})
	idp.groups = []string{"shop-operators"}
	v := visit(t)
	v.get(self+"/jobs/jobs").is("/jobs/overview", 200, "Remind of open carts", "Eve")
	v.get(self+"/jobs/jobs/new").is("/jobs/jobs/new", 403, "editor")
	idp.groups = []string{"xxljob-admins"}
	admin := visit(t)
	admin.get(self+"/login").is("/jobs/overview", 200, "Remind of open carts")
	admin.get(self+"/jobs/jobs").is("/jobs/jobs", 200, "jobs/new")
	idp.groups = nil
	nobody := visit(t)
	nobody.get(self+"/login").is("/jobs/overview", 200)
	if strings.Contains(nobody.page, "Remind") {
		t.Error("who is in no group sees jobs")
	}
	for name, bend := range map[string]func(map[string]any){
		"a token for somebody else": func(c map[string]any) { c["aud"] = "other" },
		"a token that is over":      func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() },
		"another nonce":             func(c map[string]any) { c["nonce"] = "x" },
		"another issuer":            func(c map[string]any) { c["iss"] = "https://evil.example" },
	} {
		idp.bend = bend
		if v := visit(t).get(self + "/login"); v.status != 403 {
			t.Errorf("%s: status %d at %s", name, v.status, v.at)
		}
	}
	idp.bend = nil
	visit(t).get(self+"/callback?code=x&state=y").is("/callback", 403)
}

// idp is a small OpenID provider at which Eve is always logged in.
type idp struct {
	*httptest.Server
	groups []string
	bend   func(claims map[string]any)
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &idp{}
	mux := http.NewServeMux()
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		answer(w, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, r *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query() // the code says what the token is to be checked by
		code := q.Get("nonce") + "." + q.Get("code_challenge")
		http.Redirect(w, r, q.Get("redirect_uri")+"?code="+url.QueryEscape(code)+"&state="+url.QueryEscape(q.Get("state")), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		nonce, challenge, _ := strings.Cut(r.PostFormValue("code"), ".")
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if base64.RawURLEncoding.EncodeToString(sum[:]) != challenge {
			http.Error(w, "the verifier is another one", http.StatusBadRequest)
			return
		}
		claims := map[string]any{"iss": p.URL, "sub": "4711", "aud": "xxljob", "exp": time.Now().Add(time.Minute).Unix(), "iat": time.Now().Unix(), "nonce": nonce,
			"name": "Eve", "preferred_username": "eve", "groups": p.groups}
		if p.bend != nil {
			p.bend(claims)
		}
		text, _ := json.Marshal(claims)
		signed, err := signer.Sign(text)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		compact, _ := signed.CompactSerialize()
		answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": compact})
	})
	return p
}

// TestNamesThatNobodyChooses: people are named by their subjects, which a provider lets nobody change,
// whatever their length.
func TestNamesThatNobodyChooses(t *testing.T) {
	long := strings.Repeat("s", 255)
	seen := map[string]bool{}
	for _, subject := range []string{"4711", strings.Repeat("s", 43), strings.Repeat("s", 64), strings.Repeat("s", 65), long[:254] + "a", long[:254] + "b"} {
		name := nameOf(&oidc.IDToken{Subject: subject})
		if len(name) == 0 || len(name) > 64 || seen[name] || len(subject) <= 43 && name != subject {
			t.Errorf("%q is named %q", subject, name)
		}
		seen[name] = true
	}
}
