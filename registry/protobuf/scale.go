package protobuf

import (
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Unmarshal reads the message:
//
//	Scale       1 metadata  2 spec  3 status
//	ScaleSpec   1 replicas
//	ScaleStatus 1 replicas  2 selector
func (s *scale) Unmarshal(data []byte) error {
	return eachField(data, func(of protowire.Number, message []byte, _ uint64) error {
		switch of {
		case 1:
			return s.ObjectMeta.Unmarshal(message)
		case 2:
			return eachField(message, s.setSpec)
		case 3:
			return eachField(message, s.setStatus)
		}
		return nil
	})
}

func (s *scale) setSpec(of protowire.Number, _ []byte, n uint64) error {
	if of == 1 {
		s.Spec.Replicas = int32(n)
	}
	return nil
}

func (s *scale) setStatus(of protowire.Number, text []byte, n uint64) error {
	switch of {
	case 1:
		s.Status.Replicas = int32(n)
	case 2:
		s.Status.Selector = string(text)
	}
	return nil
}

// eachField calls set with the fields of a message: each has bytes or a number, or is of a type
// that no field of a Scale has.
func eachField(message []byte, set func(of protowire.Number, text []byte, n uint64) error) error {
	for len(message) > 0 {
		of, wire, size := protowire.ConsumeTag(message)
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		var text []byte
		var n uint64
		switch wire {
		case protowire.BytesType:
			text, size = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			n, size = protowire.ConsumeVarint(message)
		default:
			size = protowire.ConsumeFieldValue(of, wire, message)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
		if err := set(of, text, n); err != nil {
			return err
		}
	}
	return nil
}
