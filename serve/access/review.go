package access

import (
	"context"
	"errors"
	"net/http"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	return authentication.UserInfo{Username: u.Name, Groups: u.Groups}
}

// describeSelf says which user asks.
func describeSelf(ctx context.Context, review *authentication.SelfSubjectReview) *field.Error {
	review.Status.UserInfo = infoOf(userOf(ctx))
	return nil
}

// reviewSelf says whether the user that asks may do something.
func (c *Config) reviewSelf(ctx context.Context, review *authorization.SelfSubjectAccessReview) (wrong *field.Error) {
	review.Status, wrong = c.decide(ctx, userOf(ctx), review.Spec.ResourceAttributes, review.Spec.NonResourceAttributes)
	return wrong
}

// reviewSubject says whether the user that the review names may do something.
func (c *Config) reviewSubject(ctx context.Context, review *authorization.SubjectAccessReview) (wrong *field.Error) {
	spec := &review.Spec
	if spec.User == "" && len(spec.Groups) == 0 {
		return field.Required(field.NewPath("spec", "user"), "give the name of a user, or groups")
	}
	review.Status, wrong = c.decide(ctx, serve.User{Name: spec.User, Groups: spec.Groups}, spec.ResourceAttributes, spec.NonResourceAttributes)
	return wrong
}

// decide asks Authorize whether a user may do something to a resource, or at a path.
func (c *Config) decide(ctx context.Context, u serve.User, of *authorization.ResourceAttributes, at *authorization.NonResourceAttributes) (status authorization.SubjectAccessReviewStatus, wrong *field.Error) {
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

// reviewToken says which user a token is of. Tokens have no audiences: a review that names some is not
// answered by a user, since the token may be meant for others.
func (c *Config) reviewToken(ctx context.Context, review *authentication.TokenReview) *field.Error {
	review.Status = authentication.TokenReviewStatus{}
	if len(review.Spec.Audiences) > 0 {
		review.Status.Error = "tokens of this server have no audiences: leave spec.audiences out"
		return nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	if err != nil {
		return field.InternalError(field.NewPath("spec", "token"), err)
	}
	r.Header.Set("Authorization", "Bearer "+review.Spec.Token)
	u, err := c.Authenticate(r)
	switch {
	case err == nil:
		review.Status.Authenticated, review.Status.User = true, infoOf(u)
	case !errors.Is(err, serve.ErrUnauthenticated): // it may be a token all the same
		review.Status.Error = err.Error()
	}
	return nil
}
