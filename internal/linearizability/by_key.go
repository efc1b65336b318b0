package linearizability

import "github.com/anishathalye/porcupine"

// ByKey returns a model's Partition for calls that are each about one key: histories of
// different keys are checked apart, in a fraction of the time. Call is the type of the
// operations' Input, and key returns the key that a call is about.
func ByKey[Call any](key func(Call) string) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		byKey := map[string][]porcupine.Operation{}
		for _, op := range history {
			of := key(op.Input.(Call))
			byKey[of] = append(byKey[of], op)
		}
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	}
}
