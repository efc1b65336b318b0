package access

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/registry/protobuf"
	"github.com/watchmill/watchmill/serve"
)

// Config has the functions of a server's [serve.Config] that decide about users.
type Config struct {
	// Authenticate is that of the server. If it is nil, there are no tokens, and TokenReview is not
	// served. A token for which it returns [serve.Anonymous] is reported as wrong.
	Authenticate func(r *http.Request) (serve.User, error)
	// Authorize is that of the server; nil allows everything, as there. A review calls it with a
	// Request that has what the review names: for a resource that has no Path.
	Authorize func(ctx context.Context, u serve.User, r *serve.Request) error
	// Rules lists what Authorize allows a user in a namespace, for users that ask for all they may do.
	// It is called concurrently. If it returns an error, the list counts as incomplete, and clients get the
	// error's text. Nil means that nothing is listed if there is an Authorize, and that clients learn so.
	Rules func(ctx context.Context, u serve.User, namespace string) (Rules, error)
}

// Reviews are the kinds. They are a [serve.Provider], safe for concurrent use, and have nothing to close.
type Reviews struct{ resources []registry.Resource }

// New returns the kinds, for the Resources of a [serve.Config].
//
// Errors: those of [registry.NewVirtual]; there is none for these kinds.
func New(cfg Config) (*Reviews, error) {
	r := &Reviews{}
	err := errors.Join(
		add(r, authenticationGroup, "SelfSubjectReview", inCluster, describeSelf),
		add(r, authorizationGroup, "SelfSubjectAccessReview", inCluster, cfg.reviewSelf),
		add(r, authorizationGroup, "SelfSubjectRulesReview", inCluster, cfg.listRules),
		add(r, authorizationGroup, "SubjectAccessReview", inCluster, cfg.reviewSubject),
		add(r, authorizationGroup, "LocalSubjectAccessReview", inNamespace, cfg.reviewLocal),
	)
	if cfg.Authenticate != nil {
		err = errors.Join(err, add(r, authenticationGroup, "TokenReview", inCluster, cfg.reviewToken))
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Resources returns the kinds, for a server.
func (r *Reviews) Resources() []registry.Resource { return r.resources }

// AsksAboutItself reports whether a request asks, by a review, which user it is of, or what that user may do. An Authorize
// that lists what it allows should allow such requests to every user: the answer is what the user could try.
func AsksAboutItself(r *serve.Request) bool {
	if r.Verb != "create" || r.Subresource != "" {
		return false
	}
	switch r.Group {
	case authenticationGroup:
		return r.Resource == "selfsubjectreviews"
	case authorizationGroup:
		return r.Resource == "selfsubjectaccessreviews" || r.Resource == "selfsubjectrulesreviews"
	}
	return false
}

// The groups of the kinds.
const (
	authenticationGroup = "authentication.k8s.io"
	authorizationGroup  = "authorization.k8s.io"
)

// scope says whether reviews are in a namespace.
type scope bool

const (
	inNamespace scope = false
	inCluster   scope = true
)

// message constrains the pointers to the types of reviews.
type message[T any] interface {
	registry.Ptr[T]
	protobuf.Message[T]
}

// add adds a kind with the function that answers its reviews. Its error may be a *field.Error.
func add[T any, P message[T]](r *Reviews, group, name string, in scope, answer func(ctx context.Context, review *T) error) error {
	kind := registry.Kind{Group: group, Version: "v1", Kind: name, ClusterScoped: in == inCluster}
	virtual, err := registry.NewVirtual[T, P](registry.VirtualConfig[T]{
		Kind: kind, Decoders: protobuf.Decoders[T, P](name),
		Answer: func(ctx context.Context, review *T) error {
			err := answer(ctx, review)
			if wrong, is := errors.AsType[*field.Error](err); is {
				return &registry.InvalidError{Kind: kind, Errors: field.ErrorList{wrong}}
			}
			return err
		},
	})
	if err != nil {
		return err
	}
	r.resources = append(r.resources, virtual.Resources()...)
	return nil
}
