package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/xxljob/xxljob/console"
)

// provider is where people log in.
type provider struct{ Issuer, Client, Secret string }

// openID logs people in at a provider: the authorization code flow with PKCE.
type openID struct {
	config   oauth2.Config
	verifier *oidc.IDTokenVerifier
}

// flowCookie has what a login that has begun is known by, until it comes back.
const flowCookie = "shop_flow"

func newOpenID(ctx context.Context, p provider, self string) (*openID, error) {
	idp, err := oidc.NewProvider(ctx, p.Issuer)
	if err != nil {
		return nil, fmt.Errorf("-issuer %s: %w", p.Issuer, err)
	}
	return &openID{
		config:   oauth2.Config{ClientID: p.Client, ClientSecret: p.Secret, Endpoint: idp.Endpoint(), RedirectURL: self + "/callback", Scopes: []string{oidc.ScopeOpenID, "profile", "groups"}},
		verifier: idp.Verifier(&oidc.Config{ClientID: p.Client}),
	}, nil
}

// begin sends a browser to the provider.
func (o *openID) begin(w http.ResponseWriter, r *http.Request) {
	state, pkce := rand.Text(), oauth2.GenerateVerifier()
	http.SetCookie(w, &http.Cookie{Name: flowCookie, Value: state + "." + pkce, Path: "/callback", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(10 * time.Minute / time.Second)})
	http.Redirect(w, r, o.config.AuthCodeURL(state, oidc.Nonce(state), oauth2.S256ChallengeOption(pkce)), http.StatusSeeOther)
}

// callback takes a browser that comes back, and begins a session of whom the provider says it is.
func (s *site) callback(w http.ResponseWriter, r *http.Request) {
	u, err := s.openID.user(r)
	if err != nil {
		show(w, http.StatusForbidden, "The login has failed: "+err.Error())
		return
	}
	http.SetCookie(w, &http.Cookie{Name: flowCookie, Path: "/callback", MaxAge: -1})
	s.begin(w, u)
	http.Redirect(w, r, "/jobs/", http.StatusSeeOther)
}

// user is whom the provider says a browser belongs to.
func (o *openID) user(r *http.Request) (u console.User, err error) {
	c, err := r.Cookie(flowCookie)
	if err != nil {
		return u, fmt.Errorf("it did not begin in this browser, or too long ago")
	}
	state, pkce, _ := strings.Cut(c.Value, ".")
	if r.FormValue("state") != state {
		return u, fmt.Errorf("it is the answer to another one")
	}
	token, err := o.config.Exchange(r.Context(), r.FormValue("code"), oauth2.VerifierOption(pkce))
	if err != nil {
		return u, err
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := o.verifier.Verify(r.Context(), raw)
	if err != nil {
		return u, err
	}
	if id.Nonce != state {
		return u, fmt.Errorf("the token is of another one")
	}
	var claims struct {
		Name     string   `json:"name"`
		Username string   `json:"preferred_username"`
		Groups   []string `json:"groups"`
	}
	if err := id.Claims(&claims); err != nil {
		return u, err
	}
	return console.User{
		Name: nameOf(id), Title: cmp.Or(claims.Name, claims.Username), Admin: slices.Contains(claims.Groups, "xxljob-admins"),
		Apps: map[string]console.Role{"shop": roleOf(claims.Groups)},
	}, nil
}

// nameOf is what the record of changes names somebody by: what a provider gives one person and nobody
// else, and does not let them change, as they may their name and preferred_username. The console keeps
// 64 bytes of a name, and subjects may have 255: a long one goes by its hash.
func nameOf(id *oidc.IDToken) string {
	if len(id.Subject) <= 43 {
		return id.Subject
	}
	sum := sha256.Sum256([]byte(id.Subject))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// roleOf is the highest role that somebody's groups give in the app.
func roleOf(groups []string) console.Role {
	for _, role := range []console.Role{console.Editor, console.Operator, console.Viewer} {
		if slices.Contains(groups, "shop-"+string(role)+"s") {
			return role
		}
	}
	return console.None
}
