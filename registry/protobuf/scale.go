package protobuf

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/internal/wire"
)

// scale is a Scale of autoscaling/v1, which typed clients send to set the number of replicas of
// a kind. The Go type that Kubernetes has for it needs those of pods.
type scale struct {
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

// Unmarshal reads the message.
func (s *scale) Unmarshal(data []byte) error {
	return wire.Read(data, wire.Fields{
		1: wire.Message(&s.ObjectMeta),
		2: wire.Nested(wire.Fields{1: wire.Int32(&s.Spec.Replicas)}),
		3: wire.Nested(wire.Fields{1: wire.Int32(&s.Status.Replicas), 2: wire.String(&s.Status.Selector)}),
	})
}
