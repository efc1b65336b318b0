package access

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/internal/wire"
)

// The types are those of Kubernetes' authorization.k8s.io/v1 and authentication.k8s.io/v1. In protobuf they are read
// without a status, since a client's is not the answer.

// about describes a type, as Kubernetes' types describe themselves.
func about(text string) map[string]string { return map[string]string{"": text} }

type selfSubjectReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Status            selfSubjectReviewStatus `json:"status,omitempty" description:"The answer."`
}

func (selfSubjectReview) SwaggerDoc() map[string]string {
	return about("SelfSubjectReview says which user asks.")
}

type selfSubjectReviewStatus struct {
	UserInfo userInfo `json:"userInfo,omitempty" description:"The user that asks."`
}

type selfSubjectAccessReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              action       `json:"spec" description:"What the user that asks may want to do."`
	Status            accessStatus `json:"status,omitempty" description:"The answer."`
}

func (selfSubjectAccessReview) SwaggerDoc() map[string]string {
	return about("SelfSubjectAccessReview says whether the user that asks may do something.")
}

type selfSubjectRulesReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              rulesSpec   `json:"spec" description:"Where the user that asks may want to do something."`
	Status            rulesStatus `json:"status,omitempty" description:"The answer."`
}

func (selfSubjectRulesReview) SwaggerDoc() map[string]string {
	return about("SelfSubjectRulesReview lists what the user that asks may do in a namespace.")
}

type rulesSpec struct {
	Namespace string `json:"namespace,omitempty" description:"The namespace. It is required."`
}

type rulesStatus struct {
	Rules           `json:",inline"`
	Incomplete      bool   `json:"incomplete" description:"The user may be allowed to do more than is listed."`
	EvaluationError string `json:"evaluationError,omitempty" description:"Why the lists are incomplete."`
}

type subjectAccessReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              subjectAccessSpec `json:"spec" description:"The user, and what it may want to do."`
	Status            accessStatus      `json:"status,omitempty" description:"The answer."`
}

func (subjectAccessReview) SwaggerDoc() map[string]string {
	return about("SubjectAccessReview says whether a user may do something.")
}

// localSubjectAccessReview is a subjectAccessReview in a namespace.
type localSubjectAccessReview subjectAccessReview

func (localSubjectAccessReview) SwaggerDoc() map[string]string {
	return about("LocalSubjectAccessReview says whether a user may do something in the namespace of the review.")
}

type subjectAccessSpec struct {
	action `json:",inline"`
	User   string              `json:"user,omitempty" description:"The name of the user."`
	Groups []string            `json:"groups,omitempty" description:"The groups of the user, or, without a user, of any that is in them."`
	Extra  map[string][]string `json:"extra,omitempty" description:"What else is known of the user, by keys in lower case."`
	UID    string              `json:"uid,omitempty" description:"What tells the user from earlier ones of that name."`
}

// action is what a user may want to do: one of both.
type action struct {
	ResourceAttributes    *resourceAttributes    `json:"resourceAttributes,omitempty" description:"A request for a resource."`
	NonResourceAttributes *nonResourceAttributes `json:"nonResourceAttributes,omitempty" description:"A request for a path that is not of a resource."`
}

type resourceAttributes struct {
	Namespace     string         `json:"namespace,omitempty" description:"The namespace. Without it, all namespaces, or none if the resource is in none."`
	Verb          string         `json:"verb,omitempty" description:"The verb, such as get, list, watch, create, update, patch or delete."`
	Group         string         `json:"group,omitempty" description:"The group of the resource."`
	Version       string         `json:"version,omitempty" description:"The version of the resource."`
	Resource      string         `json:"resource,omitempty" description:"The resource, such as widgets."`
	Subresource   string         `json:"subresource,omitempty" description:"The subresource, such as status."`
	Name          string         `json:"name,omitempty" description:"The name of the object. Without it, all objects."`
	FieldSelector *fieldSelector `json:"fieldSelector,omitempty" description:"The objects are those whose fields match."`
	LabelSelector *labelSelector `json:"labelSelector,omitempty" description:"The objects are those whose labels match."`
}

type fieldSelector struct {
	RawSelector  string                            `json:"rawSelector,omitempty" description:"The selector, as in a request."`
	Requirements []metav1.FieldSelectorRequirement `json:"requirements,omitempty" description:"The selector in parts, which this server takes for none."`
}

type labelSelector struct {
	RawSelector  string                            `json:"rawSelector,omitempty" description:"The selector, as in a request."`
	Requirements []metav1.LabelSelectorRequirement `json:"requirements,omitempty" description:"The selector in parts, which this server takes for none."`
}

type nonResourceAttributes struct {
	Path string `json:"path,omitempty" description:"The path, such as /metrics."`
	Verb string `json:"verb,omitempty" description:"The method of HTTP in lower case, such as get."`
}

type accessStatus struct {
	Allowed         bool   `json:"allowed" description:"The user may do it."`
	Denied          bool   `json:"denied,omitempty" description:"This server does not set it."`
	Reason          string `json:"reason,omitempty" description:"Why the user may not do it."`
	EvaluationError string `json:"evaluationError,omitempty" description:"This server does not set it."`
}

type tokenReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              tokenSpec   `json:"spec" description:"The token."`
	Status            tokenStatus `json:"status,omitempty" description:"The answer."`
}

func (tokenReview) SwaggerDoc() map[string]string {
	return about("TokenReview says which user has a token.")
}

type tokenSpec struct {
	Token     string   `json:"token,omitempty" description:"The bearer token. It is required."`
	Audiences []string `json:"audiences,omitempty" description:"For which servers the token is to be. Tokens of this server are for none in particular."`
}

type tokenStatus struct {
	Authenticated bool     `json:"authenticated,omitempty" description:"A user has the token."`
	User          userInfo `json:"user,omitempty" description:"The user that has it."`
	Audiences     []string `json:"audiences,omitempty" description:"This server does not set it."`
	Error         string   `json:"error,omitempty" description:"Why the token could not be reviewed."`
}

type userInfo struct {
	Username string              `json:"username,omitempty" description:"The name of the user."`
	UID      string              `json:"uid,omitempty" description:"What tells the user from earlier ones of that name."`
	Groups   []string            `json:"groups,omitempty" description:"The groups of the user."`
	Extra    map[string][]string `json:"extra,omitempty" description:"What else is known of the user, by keys in lower case."`
}

// question returns the fields of a review in protobuf: the metadata, and the spec.
func question(meta *metav1.ObjectMeta, spec wire.Fields) wire.Fields {
	return wire.Fields{1: wire.Message(meta), 2: wire.Nested(spec)}
}

func (r *selfSubjectReview) Unmarshal(data []byte) error {
	return wire.Read(data, wire.Fields{1: wire.Message(&r.ObjectMeta)})
}

func (r *selfSubjectAccessReview) Unmarshal(data []byte) error {
	return wire.Read(data, question(&r.ObjectMeta, r.Spec.fields()))
}

func (r *selfSubjectRulesReview) Unmarshal(data []byte) error {
	return wire.Read(data, question(&r.ObjectMeta, wire.Fields{1: wire.String(&r.Spec.Namespace)}))
}

func (r *subjectAccessReview) Unmarshal(data []byte) error {
	return wire.Read(data, question(&r.ObjectMeta, r.Spec.fields()))
}

func (r *localSubjectAccessReview) Unmarshal(data []byte) error {
	return (*subjectAccessReview)(r).Unmarshal(data)
}

func (r *tokenReview) Unmarshal(data []byte) error {
	return wire.Read(data, question(&r.ObjectMeta, wire.Fields{1: wire.String(&r.Spec.Token), 2: wire.Strings(&r.Spec.Audiences)}))
}

func (a *action) fields() wire.Fields {
	return wire.Fields{1: wire.Optional(&a.ResourceAttributes), 2: wire.Optional(&a.NonResourceAttributes)}
}

func (s *subjectAccessSpec) fields() wire.Fields {
	of := s.action.fields()
	of[3], of[4], of[5], of[6] = wire.String(&s.User), wire.Strings(&s.Groups), wire.Bytes(s.addExtra), wire.String(&s.UID)
	return of
}

// addExtra reads an entry of the map.
func (s *subjectAccessSpec) addExtra(entry []byte) error {
	var key string
	var values []string
	err := wire.Read(entry, wire.Fields{1: wire.String(&key), 2: wire.Nested(wire.Fields{1: wire.Strings(&values)})})
	if s.Extra == nil {
		s.Extra = map[string][]string{}
	}
	s.Extra[key] = values
	return err
}

func (a *resourceAttributes) Unmarshal(data []byte) error {
	return wire.Read(data, wire.Fields{
		1: wire.String(&a.Namespace), 2: wire.String(&a.Verb), 3: wire.String(&a.Group), 4: wire.String(&a.Version),
		5: wire.String(&a.Resource), 6: wire.String(&a.Subresource), 7: wire.String(&a.Name),
		8: wire.Optional(&a.FieldSelector), 9: wire.Optional(&a.LabelSelector),
	})
}

func (a *nonResourceAttributes) Unmarshal(data []byte) error {
	return wire.Read(data, wire.Fields{1: wire.String(&a.Path), 2: wire.String(&a.Verb)})
}

func (s *fieldSelector) Unmarshal(data []byte) error {
	return wire.Read(data, wire.Fields{1: wire.String(&s.RawSelector), 2: wire.Messages(&s.Requirements)})
}

func (s *labelSelector) Unmarshal(data []byte) error {
	return wire.Read(data, wire.Fields{1: wire.String(&s.RawSelector), 2: wire.Messages(&s.Requirements)})
}
