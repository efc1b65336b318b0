// Package usercode is about what an engine's user brings along: functions, which
// may panic, and settings, which may be wrong. There is one way to contain the
// former, [Call], and one error for each: [PanicError] and [ConfigError].
//
//	handler, getter, transform ──▶ Call ──▶ panic ──▶ *PanicError ──▶ returned, logged, or the end of a watch
//	options ──▶ Validate ──▶ *ConfigError: which field is wrong, and what to write instead
package usercode
