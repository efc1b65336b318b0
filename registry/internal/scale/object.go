package scale

import (
	"encoding/json"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Kind is the kind of scales.
var Kind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

// ReplicasPath is where a scale has the number that is wanted.
var ReplicasPath = field.NewPath("spec", "replicas")

// NoReplicas stands for a number that is missing, in a scale to be patched: the patch sets
// it, or the result is refused.
const NoReplicas = math.MinInt32

// Object is a scale.
type Object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Replicas int32  `json:"replicas"`
		Selector string `json:"selector,omitempty"`
	} `json:"status"`
}

// Schema is the OpenAPI schema of scales.
var Schema = json.RawMessage(`{"type":"object","description":"The number of replicas of an object.","properties":{` +
	`"spec":{"type":"object","description":"What is wanted.","properties":{` +
	`"replicas":{"type":"integer","format":"int32","description":"The number of replicas that is wanted."}}},` +
	`"status":{"type":"object","description":"What there is.","properties":{` +
	`"replicas":{"type":"integer","format":"int32","description":"The number of replicas that there are."},` +
	`"selector":{"type":"string","description":"The label selector of the replicas."}}}}}`)

// Read reads a scale. strict are its repeated and unknown fields.
func Read(body []byte) (s *Object, strict []error, err error) {
	s = &Object{}
	strict, err = kjson.UnmarshalStrict(body, s)
	return s, strict, err
}

// Another returns a copy of the scale that wants another number.
func (s *Object) Another() *Object {
	other := *s
	if other.Spec.Replicas++; s.Spec.Replicas == math.MaxInt32 {
		other.Spec.Replicas = 0
	}
	return &other
}

// Meta returns what the scale of an object has of the object's metadata. The rest is not for those that may read
// the scale alone.
func Meta(m metav1.Object) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Name: m.GetName(), Namespace: m.GetNamespace(), UID: m.GetUID(), CreationTimestamp: m.GetCreationTimestamp()}
}
