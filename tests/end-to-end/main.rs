//! The real `gpumon`, over the fake NVML library, through the real `dlopen`, sockets and processes.

mod calls;
mod collect;
mod doctor;
mod events;
mod faults;
mod garbage;
mod hangs;
mod hidden_functions;
mod hostile_clients;
mod interval;
mod libraries;
mod long_waits;
mod many;
mod metrics;
mod mig;
mod pause;
mod refusals;
mod replaced;
mod return_codes;
mod serve;
mod show;
mod smi;
mod support;
mod traces;
