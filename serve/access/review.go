package access

import (
	"context"
	"errors"
	"net/http"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/serve"
)

// userOf returns the user that asks; a call in the process has none.
func userOf(ctx context.Context) serve.User {
	if u, found := serve.UserOf(ctx); found {
		return u
	}
	return serve.Anonymous
}

// infoOf returns a user in the form of reviews.
func infoOf(u serve.User) authentication.UserInfo {
	info := authentication.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	if len(u.Extra) > 0 {
		info.Extra = make(map[string]authentication.ExtraValue, len(u.Extra))
	}
	for key, values := range u.Extra {
		info.Extra[key] = values
	}
	return info
}

// subjectOf returns the user that a review asks about.
func subjectOf(spec *authorization.SubjectAccessReviewSpec) serve.User {
	u := serve.User{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	if len(spec.Extra) > 0 {
		u.Extra = make(map[string][]string, len(spec.Extra))
	}
	for key, values := range spec.Extra {
		u.Extra[key] = values
	}
	return u
}

// describeSelf says which user asks.
func describeSelf(ctx context.Context, review *authentication.SelfSubjectReview) error {
	review.Status.UserInfo = infoOf(userOf(ctx))
	return nil
}

// reviewSelf says whether the user that asks may do something.
func (c *Config) reviewSelf(ctx context.Context, review *authorization.SelfSubjectAccessReview) (err error) {
	review.Status, err = c.decide(ctx, userOf(ctx), review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	return err
}

// reviewSubject says whether the user that the review names may do something.
func (c *Config) reviewSubject(ctx context.Context, review *authorization.SubjectAccessReview) (err error) {
	review.Status, err = c.decideFor(ctx, &review.Spec)
	return err
}

// reviewLocal says whether the user that the review names may do something in the review's namespace.
func (c *Config) reviewLocal(ctx context.Context, review *authorization.LocalSubjectAccessReview) (err error) {
	of, path := review.Spec.ResourceAttributes, field.NewPath("spec")
	switch {
	case review.Spec.NonResourceAttributes != nil:
		return field.Forbidden(path.Child("nonResourceAttributes"), "a path has no namespace: give resourceAttributes, or create a SubjectAccessReview")
	case of != nil && of.Namespace != review.Namespace:
		return field.Invalid(path.Child("resourceAttributes", "namespace"), of.Namespace, "must match metadata.namespace")
	}
	review.Status, err = c.decideFor(ctx, &review.Spec)
	return err
}

// decideFor asks Authorize about the user that a review names.
func (c *Config) decideFor(ctx context.Context, spec *authorization.SubjectAccessReviewSpec) (status authorization.SubjectAccessReviewStatus, err error) {
	if spec.User == "" && len(spec.Groups) == 0 {
		return status, field.Required(field.NewPath("spec", "user"), "give the name of a user, or groups")
	}
	return c.decide(ctx, subjectOf(spec), spec.ResourceAttributes, spec.NonResourceAttributes)
}

// decide asks Authorize whether a user may do something to a resource, or at a path.
func (c *Config) decide(ctx context.Context, u serve.User, of *authorization.ResourceAttributes, at *authorization.NonResourceAttributes) (status authorization.SubjectAccessReviewStatus, err error) {
	var request serve.Request
	switch {
	case of != nil && at == nil:
		request = requestFor(of)
	case at != nil && of == nil:
		request = serve.Request{Verb: at.Verb, Path: at.Path}
	default:
		return status, field.Required(field.NewPath("spec", "resourceAttributes"), "give either this or nonResourceAttributes")
	}
	if c.Authorize != nil {
		if refusal := c.Authorize(ctx, u, &request); refusal != nil {
			status.Reason = refusal.Error()
			return status, nil
		}
	}
	status.Allowed = true
	return status, nil
}

// requestFor returns a request for a resource. A selector that is given as requirements counts as none,
// which asks for more.
func requestFor(of *authorization.ResourceAttributes) serve.Request {
	r := serve.Request{
		Verb: of.Verb, Group: of.Group, Version: of.Version, Resource: of.Resource, Subresource: of.Subresource,
		Namespace: of.Namespace, Name: of.Name,
	}
	if of.LabelSelector != nil {
		r.Labels = of.LabelSelector.RawSelector
	}
	if of.FieldSelector != nil {
		r.Fields = of.FieldSelector.RawSelector
	}
	return r
}

// everything are the rules of a server without Authorize.
var everything = authorization.SubjectRulesReviewStatus{
	ResourceRules:    []authorization.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
	NonResourceRules: []authorization.NonResourceRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
}

// listRules lists what the user that asks may do in a namespace, as far as that can be listed.
func (c *Config) listRules(ctx context.Context, review *authorization.SelfSubjectRulesReview) error {
	if review.Spec.Namespace == "" {
		return &registry.BadRequestError{Reason: "no namespace on request"} // no invalid field, as in Kubernetes
	}
	var err error
	review.Status, err = c.rulesOf(ctx, userOf(ctx), review.Spec.Namespace)
	if err != nil {
		review.Status.Incomplete, review.Status.EvaluationError = true, err.Error()
	}
	// The lists are required.
	review.Status.ResourceRules = append([]authorization.ResourceRule{}, review.Status.ResourceRules...)
	review.Status.NonResourceRules = append([]authorization.NonResourceRule{}, review.Status.NonResourceRules...)
	return nil
}

// rulesOf returns what a user may do in a namespace. With an error it is incomplete.
func (c *Config) rulesOf(ctx context.Context, u serve.User, namespace string) (status authorization.SubjectRulesReviewStatus, err error) {
	switch {
	case c.Rules != nil:
		return c.Rules(ctx, u, namespace)
	case c.Authorize == nil:
		return everything, nil
	}
	return status, errNotListed
}

// errNotListed: there is an Authorize without Rules.
var errNotListed = errors.New("this server decides each request and does not list its rules: ask whether you can do one thing")

// reviewToken says which user a token is of. Tokens have no audiences: a review that names some is not
// answered by a user, since the token may be meant for others.
func (c *Config) reviewToken(ctx context.Context, review *authentication.TokenReview) error {
	review.Status = authentication.TokenReviewStatus{}
	if review.Spec.Token == "" { // which Authenticate may take for a user without credentials
		return &registry.BadRequestError{Reason: "token is required for TokenReview in authentication"}
	}
	if len(review.Spec.Audiences) > 0 {
		review.Status.Error = "tokens of this server have no audiences: leave spec.audiences out"
		return nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody)
	if err != nil {
		return field.InternalError(field.NewPath("spec", "token"), err)
	}
	r.Header.Set("Authorization", "Bearer "+review.Spec.Token)
	u, err := c.Authenticate(r)
	switch {
	case err == nil && u.Name == serve.Anonymous.Name: // like a request without credentials: no user has the token
	case err == nil:
		review.Status.Authenticated, review.Status.User = true, infoOf(u)
	case !errors.Is(err, serve.ErrUnauthenticated): // it may be a token all the same
		review.Status.Error = err.Error()
	}
	return nil
}
