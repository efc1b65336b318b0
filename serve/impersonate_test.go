package serve_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// acting is a server on which root may act as all users, and bob as alice alone, with neither
// groups nor more. It records what Authorize is asked about impersonation, the users that it is
// asked about otherwise, and the users that write. What is audited comes over a channel, since it
// follows the answer.
type acting struct {
	*server
	audited chan string

	mu                     sync.Mutex
	parts, allowed, writes []string
}

func newActing(t *testing.T, edit ...func(*registry.Config[Widget], *serve.Config)) *acting {
	a := &acting{audited: make(chan string, 100)}
	a.server = newServer(t, append(edit, func(w *registry.Config[Widget], c *serve.Config) {
		c.Authenticate = serve.BearerTokens(map[string]serve.User{"r": {Name: "root"}, "b": {Name: "bob"}})
		c.Authorize, c.Impersonation, c.Audit = a.authorize, true, a.audit
		w.Strategy.Prepare = func(ctx context.Context, _, _ *Widget) {
			u, _ := serve.UserOf(ctx)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.writes = append(a.writes, u.Name)
		}
	})...)
	return a
}

func (a *acting) authorize(_ context.Context, u serve.User, r *serve.Request) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Verb != "impersonate" {
		a.allowed = append(a.allowed, fmt.Sprintf("%s %q %s %q", u.Name, u.Groups, u.UID, u.Extra))
		if u.Name == "carol" {
			return errors.New("carol is not here")
		}
		return nil
	}
	a.parts = append(a.parts, fmt.Sprintf("%s: %s/%s %s/%s %s/%s", u.Name, r.Group, r.Version, r.Resource, r.Subresource, r.Namespace, r.Name))
	if u.Name == "root" || r.Resource == "users" && r.Name == "alice" {
		return nil
	}
	return errors.New("only root may")
}

func (a *acting) audit(_ context.Context, e serve.Audited) {
	as := "itself"
	if e.Impersonated != nil {
		as = e.Impersonated.Name
	}
	a.audited <- fmt.Sprintf("%s as %s: %d", e.User.Name, as, e.Code)
}

// as sends a request to list widgets with a token and headers of impersonation, by the rest of their names,
// and forgets what was recorded before.
func (a *acting) as(token string, headers ...string) answer {
	a.t.Helper()
	a.record()
	all := []string{"Authorization", "Bearer " + token}
	for i := 0; i < len(headers); i += 2 {
		all = append(all, "Impersonate-"+headers[i], headers[i+1])
	}
	return a.get(inDefault, all...)
}

// record returns what was recorded since it was called before.
func (a *acting) record() (parts, allowed, writes []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	parts, allowed, writes = a.parts, a.allowed, a.writes
	a.parts, a.allowed, a.writes = nil, nil, nil
	return parts, allowed, writes
}

// The other user has what the headers say and what follows from its name, and the sender needs to be allowed
// each part.
func TestImpersonation_IsAllowedPartByPart(t *testing.T) {
	a := newActing(t)
	for name, c := range map[string]struct{ headers, parts, user []string }{
		"a name": {
			[]string{"User", "alice"},
			[]string{"root: /v1 users/ /alice"},
			[]string{`alice ["system:authenticated"]  map[]`},
		},
		"all there is": {
			[]string{"User", "alice", "Group", "readers", "Group", "writers", "Uid", "u-1", "Extra-Scopes", "a", "Extra-Scopes", "b", "Extra-Scope%73", "c", "Extra-Example.com%2fTeam", "x", "Extra-50%", "y"},
			[]string{
				"root: /v1 users/ /alice", "root: /v1 groups/ /readers", "root: /v1 groups/ /writers", "root: authentication.k8s.io/v1 uids/ /u-1",
				"root: authentication.k8s.io/v1 userextras/50% /y", "root: authentication.k8s.io/v1 userextras/example.com/team /x",
				"root: authentication.k8s.io/v1 userextras/scopes /c", "root: authentication.k8s.io/v1 userextras/scopes /a", "root: authentication.k8s.io/v1 userextras/scopes /b",
			},
			[]string{`alice ["readers" "writers" "system:authenticated"] u-1 map["50%":["y"] "example.com/team":["x"] "scopes":["c" "a" "b"]]`},
		},
		"a service account": {
			[]string{"User", "system:serviceaccount:hall:robot"},
			[]string{"root: /v1 serviceaccounts/ hall/robot"},
			[]string{`system:serviceaccount:hall:robot ["system:serviceaccounts" "system:serviceaccounts:hall" "system:authenticated"]  map[]`},
		},
		"a service account with groups": {
			[]string{"User", "system:serviceaccount:hall:robot", "Group", "system:authenticated"},
			[]string{"root: /v1 serviceaccounts/ hall/robot", "root: /v1 groups/ /system:authenticated"},
			[]string{`system:serviceaccount:hall:robot ["system:authenticated"]  map[]`},
		},
		"no service account": {
			[]string{"User", "system:serviceaccount:hall:Robot"},
			[]string{"root: /v1 users/ /system:serviceaccount:hall:Robot"},
			[]string{`system:serviceaccount:hall:Robot ["system:authenticated"]  map[]`},
		},
		"anonymous": {
			[]string{"User", "system:anonymous"},
			[]string{"root: /v1 users/ /system:anonymous"},
			[]string{`system:anonymous ["system:unauthenticated"]  map[]`},
		},
		"not authenticated": {
			[]string{"User", "alice", "Group", "system:unauthenticated"},
			[]string{"root: /v1 users/ /alice", "root: /v1 groups/ /system:unauthenticated"},
			[]string{`alice ["system:unauthenticated"]  map[]`},
		},
	} {
		require.Equal(t, 200, a.as("r", c.headers...).code, name)
		parts, allowed, _ := a.record()
		require.Equal(t, c.parts, parts, name)
		require.Equal(t, c.user, allowed, name)
	}
}

// A request that asks for impersonation is answered as that of the other user, or refused: never as the
// sender's.
func TestImpersonation_IsNeverIgnored(t *testing.T) {
	a := newActing(t)
	for name, c := range map[string]struct {
		headers []string
		code    int
		says    string
	}{
		"may not be that user":       {[]string{"User", "dave"}, 403, `users "dave" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope: only root may`},
		"may not be in that group":   {[]string{"User", "alice", "Group", "admins"}, 403, `groups "admins" is forbidden: User "bob" cannot impersonate resource "groups"`},
		"may not have that uid":      {[]string{"User", "alice", "Uid", "1"}, 403, `uids.authentication.k8s.io "1" is forbidden`},
		"may not have that extra":    {[]string{"User", "alice", "Extra-Scopes", "all"}, 403, `cannot impersonate resource "userextras/scopes" in API group "authentication.k8s.io" at the cluster scope`},
		"may not be that account":    {[]string{"User", "system:serviceaccount:hall:robot"}, 403, `cannot impersonate resource "serviceaccounts" in API group "" in the namespace "hall"`},
		"an empty name":              {[]string{"User", ""}, 400, "Impersonate-User is empty"},
		"two names":                  {[]string{"User", "alice", "User", "dave"}, 400, "given twice"},
		"two uids":                   {[]string{"User", "alice", "Uid", "1", "Uid", "2"}, 400, "given twice"},
		"a group without a name":     {[]string{"Group", "admins"}, 400, "without a user"},
		"a uid without a name":       {[]string{"Uid", "1"}, 400, "without a user"},
		"more without a name":        {[]string{"Extra-Scopes", "all"}, 400, "without a user"},
		"an empty group":             {[]string{"User", "alice", "Group", ""}, 400, "Impersonate-Group is empty"},
		"a value without a key":      {[]string{"User", "alice", "Extra-", "all"}, 400, "unknown"},
		"a header that is not known": {[]string{"User", "alice", "Tenant", "hall"}, 400, "Impersonate-Tenant is unknown"},
	} {
		refused := a.as("b", c.headers...)
		require.Equal(t, c.code, refused.code, "%s: %s", name, refused.body)
		require.Contains(t, refused.str("message"), c.says, name)
		_, allowed, _ := a.record()
		require.Empty(t, allowed, name)
	}
	require.Equal(t, 200, a.as("b", "User", "alice").code)
	require.Equal(t, 403, a.as("r", "User", "carol").code, "the rights of root do not count")
	require.Equal(t, 401, a.as("guessed", "User", "alice").code)
}

func TestImpersonation_IsAnOption(t *testing.T) {
	all := func(context.Context, serve.User, *serve.Request) error { return nil }
	for name, rules := range map[string]func(context.Context, serve.User, *serve.Request) error{"rules that allow it": all, "no rules": nil} {
		s := newServer(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Authorize = rules })
		refused := s.get(inDefault, "Impersonate-User", "alice")
		require.Equal(t, 403, refused.code, name)
		require.Contains(t, refused.str("message"), "Impersonate-User", name)
	}
	_, err := serve.New(serve.Config{Impersonation: true})
	require.ErrorIs(t, err, engine.ErrConfig)
	require.ErrorContains(t, err, "Impersonation")
	require.ErrorContains(t, err, "Authorize")
}

// The record of a request has both users, so that it says which has sent it.
func TestImpersonation_IsAudited(t *testing.T) {
	a := newActing(t)
	for _, c := range []struct{ token, as, audited string }{
		{"r", "alice", "root as alice: 200"}, {"r", "carol", "root as carol: 403"}, {"b", "dave", "bob as itself: 403"},
	} {
		a.as(c.token, "User", c.as)
		require.Equal(t, c.audited, <-a.audited)
	}
	a.as("r")
	require.Equal(t, "root as itself: 200", <-a.audited)
}

// What a request does is the other user's: the rules of a kind know that one, and its watches count.
func TestImpersonation_ActsAsTheOther(t *testing.T) {
	a := newActing(t, func(_ *registry.Config[Widget], c *serve.Config) { c.Limits.WatchesPerUser = 1 })
	as := func(user string) []string { return []string{"Authorization", "Bearer r", "Impersonate-User", user} }
	require.Equal(t, 201, a.do("POST", inDefault, `{"metadata":{"name":"a"}}`, as("alice")...).code)
	_, _, writes := a.record()
	require.Equal(t, []string{"alice"}, writes)
	const watches = inDefault + "?watch=1"
	a.watch(watches, as("alice")...).expect("ADDED a")
	a.watch(watches, as("dave")...).expect("ADDED a")
	require.Equal(t, 429, a.get(watches, as("alice")...).code)
	require.Equal(t, 429, a.get(watches, slices.Concat(as("dave"), []string{"Impersonate-Group", "readers"})...).code)
}
