package serve

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/serve/internal/status"
)

// The headers by which a client asks to act as a user. The key of a value of Extra is the rest
// of the header's name.
const (
	impersonateUser  = impersonateAny + "User"
	impersonateUID   = impersonateAny + "Uid"
	impersonateGroup = impersonateAny + "Group"
	impersonateExtra = impersonateAny + "Extra-"
	impersonateAny   = "Impersonate-"
)

// The groups that users are in because of what they are.
const (
	authenticatedGroup   = "system:authenticated"
	unauthenticatedGroup = "system:unauthenticated"
	serviceAccountsGroup = "system:serviceaccounts"
)

// impersonate has the call go on as the user that its headers name, if it names one and Authorize
// allows that. It refuses what it does not understand, since the request would otherwise have
// the rights of its sender.
func (c *call) impersonate() error {
	names := impersonationHeaders(c.r.Header)
	switch {
	case len(names) == 0:
		return nil
	case !c.cfg.Impersonation:
		return apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("this server has no impersonation: leave out the header %s", names[0]))
	}
	other, err := impersonated(c.r.Header, names)
	if err != nil {
		return err
	}
	ctx := c.withUser(c.r.Context())
	for _, part := range partsOf(&other) {
		if err := c.cfg.Authorize(ctx, c.user, &part); err != nil {
			return cannotImpersonate(c.user.Name, &part, err)
		}
	}
	other.Groups = withImpliedGroups(&other)
	c.actAs(other)
	return nil
}

// impersonationHeaders returns the names of the headers of impersonation, in order, known or not.
func impersonationHeaders(h http.Header) (names []string) {
	for name := range h {
		if strings.HasPrefix(name, impersonateAny) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// impersonated returns the user that the headers of these names describe. The error is a Status.
func impersonated(h http.Header, names []string) (u User, err error) {
	for _, name := range names {
		values := h[name]
		if slices.Contains(values, "") {
			return u, status.BadRequest("the header %s is empty", name)
		}
		key, isExtra := strings.CutPrefix(name, impersonateExtra)
		switch {
		case name == impersonateUser && len(values) == 1:
			u.Name = values[0]
		case name == impersonateUID && len(values) == 1:
			u.UID = values[0]
		case name == impersonateGroup:
			u.Groups = slices.Clone(values)
		case isExtra && key != "":
			addExtra(&u, key, values)
		default:
			return u, status.BadRequest("the header %s is unknown or given twice: impersonate a user by one Impersonate-User, at most one -Uid, and any -Group and -Extra-KEY", name)
		}
	}
	if u.Name == "" {
		return u, status.BadRequest("%s asks for impersonation without a user: give Impersonate-User, too", strings.Join(names, ", "))
	}
	return u, nil
}

// addExtra adds the values of a key that is escaped as in a URL, so that a header's name can have
// it. A key that is not escaped well counts as it is.
func addExtra(u *User, escaped string, values []string) {
	escaped = strings.ToLower(escaped)
	key, err := url.PathUnescape(escaped)
	if err != nil {
		key = escaped
	}
	if u.Extra == nil {
		u.Extra = map[string][]string{}
	}
	u.Extra[key] = append(u.Extra[key], values...)
}

// partsOf returns what a user needs to be allowed for acting as another: a request for each part of
// the other.
func partsOf(other *User) []Request {
	of := func(resource, name string) Request {
		return Request{Verb: "impersonate", Version: "v1", Resource: resource, Name: name}
	}
	user := of("users", other.Name)
	if namespace, name, is := serviceAccount(other.Name); is {
		user = of("serviceaccounts", name)
		user.Namespace = namespace
	}
	parts := []Request{user}
	for _, group := range other.Groups {
		parts = append(parts, of("groups", group))
	}
	const authentication = "authentication.k8s.io"
	if other.UID != "" {
		uid := of("uids", other.UID)
		uid.Group = authentication
		parts = append(parts, uid)
	}
	for _, key := range slices.Sorted(maps.Keys(other.Extra)) {
		for _, value := range other.Extra[key] {
			extra := of("userextras", value)
			extra.Group, extra.Subresource = authentication, key
			parts = append(parts, extra)
		}
	}
	return parts
}

// serviceAccount returns the namespace and name of the service account that a user is, if it is one.
func serviceAccount(user string) (namespace, name string, is bool) {
	rest, is := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, found := strings.Cut(rest, ":")
	is = is && found && len(validation.ValidateNamespaceName(namespace, false)) == 0 && len(validation.ValidateServiceAccountName(name, false)) == 0
	return namespace, name, is
}

// withImpliedGroups returns the groups that an impersonated user is in: those that were asked for,
// and those that follow from its name.
func withImpliedGroups(u *User) []string {
	groups := u.Groups
	if namespace, _, is := serviceAccount(u.Name); is && len(groups) == 0 {
		groups = []string{serviceAccountsGroup, serviceAccountsGroup + ":" + namespace}
	}
	switch {
	case slices.Contains(groups, unauthenticatedGroup):
		return groups
	case u.Name == Anonymous.Name:
		return append(groups, unauthenticatedGroup)
	case slices.Contains(groups, authenticatedGroup):
		return groups
	}
	return append(groups, authenticatedGroup)
}

// cannotImpersonate is the answer to a request for a part of a user that Authorize refuses.
func cannotImpersonate(sender string, part *Request, why error) error {
	resource, where := part.Resource, "at the cluster scope"
	if part.Subresource != "" {
		resource += "/" + part.Subresource
	}
	if part.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", part.Namespace)
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: part.Group, Resource: part.Resource}, part.Name, fmt.Errorf(
		"User %q cannot impersonate resource %q in API group %q %s: %v", sender, resource, part.Group, where, why))
}
