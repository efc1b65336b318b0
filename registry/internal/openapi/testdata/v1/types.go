// Package v1 has types with the names of types of Kubernetes' package v1.
package v1

// Duration is a span of days.
type Duration struct {
	Days int `json:"days"`
}
