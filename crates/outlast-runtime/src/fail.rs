//! Fail points, see [`outlast_sandbox::fail`].

pub(crate) use outlast_sandbox::fail::point;
